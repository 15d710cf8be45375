"""Act: the second scene, joined to the first: its share of the plan, its story, its checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from upright.cli.demo.checks import Verdict
from upright.cli.demo.people import story
from upright.cli.demo.people.checks import judge
from upright.cli.demo.people.drawn import Cast
from upright.cli.demo.people.letters import calendar
from upright.cli.demo.people.servers import Servers
from upright.cli.demo.stage import Plan, Sabotage
from upright.cli.demo.story import Outcome
from upright.cli.demo.story import Scene as FirstScene
from upright.llm.scripted.demo import demo_script


async def prepare(servers: Servers, who: Cast, now: datetime) -> None:
    """Put into the calendar what is there before the hub ever looks."""
    await servers.put_event(who.taken.uid, calendar(who.taken, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The servers that run, and who speaks."""

    servers: Servers
    cast: Cast

    def planned(self, plan: Plan) -> Plan:
        """Add the sources to a plan."""
        return replace(
            plan,
            config=plan.config + self.servers.config(self.cast.user),
            secrets={**plan.secrets, **self.servers.secrets},
            script=demo_script("people"),
        )

    async def play(self, first: FirstScene, outcome: Outcome) -> tuple[list[Verdict], str]:
        """Play the story on the running hub, judge it, and say why it ended early, if it did."""
        scene = story.Scene(
            stage=first.stage,
            servers=self.servers,
            cast=self.cast,
            first=outcome,
            branch=first.drawn.branch,
            speaker=first.speaker,
            patience_s=first.patience.fix_s,
            denies=first.sabotage is Sabotage.DENIED,
        )
        seen = await story.play(scene)
        first.speaker.say("Checked from outside:")
        return await judge(scene, seen), seen.gave_up
