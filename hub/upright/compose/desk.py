"""Desk: rules, people and followers, as a signed-in person changes them; fills ``web.parts.Desk``.

Every change returns after its commit, and holds from the next trigger on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass

from upright.api import ActorKind
from upright.core.gate import DEFAULT_RULES, Rule
from upright.core.ids import SessionId
from upright.engine.clock import now_ms
from upright.engine.units import Units
from upright.settings.rules import read_rules
from upright.store import follows, persons, rules
from upright.store.errors import NotNowError
from upright.store.policy import Base
from upright.store.resolve import resolve, row
from upright.store.unit import Connection, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Fills ``web.parts.Desk``; ``base`` is what the configuration says."""

    units: Units
    base: Base
    woken: Callable[[Collection[SessionId]], None]

    # -------------------------------------------------------------- rules
    async def rules(self, number: int | None) -> object:
        """Show a version: its text, and its rules in order, each with its hits of seven days."""
        since_ms = now_ms(self.units.clock) - rules.HITS_MS

        def query(c: Connection) -> tuple[rules.Version, dict[str, int]]:
            return rules.read(c, number), rules.hits(c, since_ms)

        version, hits = await self.units.read(query)
        own = read_rules(version.text, origin=f"version {version.number} of the rules")
        listed = [
            _shown(rule, hits, built_in=built_in)
            for some, built_in in ((own, False), (DEFAULT_RULES, True))
            for rule in some
        ]
        return {**asdict(version), "rules": listed}

    async def rules_history(self, limit: int) -> object:
        """List versions, the newest first."""
        return await self.units.read(lambda c: [asdict(one) for one in rules.history(c, limit)])

    async def edit_rules(self, text: str, base: int) -> object:
        """Store a version that was made from number *base*.

        Raises:
            SettingsError: the text holds no sound rules. NotNowError: another version came
                meanwhile. Nothing has changed then.
        """
        own = read_rules(text, origin="the rules")
        number = await self.units.write(lambda u: rules.edit(u, text, by=u.by, base=base))
        return {"number": number, "rules": len(own), "changed": number != base}

    # -------------------------------------------------------------- people
    async def people(self) -> object:
        """List people by name, with their ids."""
        return await self.units.read(lambda c: persons.listed(c, self.base.people))

    async def add_person(self, name: str, kind: str) -> object:
        """Add a person of this kind."""
        if kind not in persons.KINDS:
            raise NotNowError(name, "a person is an operator, a member or a contact")
        known = ActorKind(kind)
        await self.units.write(lambda u: persons.add(u, name, known, self.base.people))
        return {"name": name, "kind": kind}

    async def link_person(self, name: str, key: str) -> object:
        """Say that an id is a person's."""
        await self.units.write(lambda u: persons.link(u, name, key, self.base.people))
        return {"name": name, "id": key}

    # -------------------------------------------------------------- followers
    async def follows(self) -> object:
        """List who follows which thread."""
        return await self.units.read(follows.all_of)

    async def follow(self, session: str, thread: str) -> object:
        """Let a worker follow a thread; a work item and a trigger stand for theirs."""

        def unit(u: Unit) -> dict[str, object]:
            who, what = _session(u.c, session), _thread(u.c, thread)
            joined = follows.join(u, who, what, by=u.by)
            return {"session": who, "thread": what, "joined": joined}

        return await self.units.write(unit)

    async def unfollow(self, session: str, thread: str) -> object:
        """Let it follow that thread no more; what it had unread there is the router's."""

        def unit(u: Unit) -> tuple[dict[str, object], list[SessionId]]:
            who, what = _session(u.c, session), _thread(u.c, thread)
            woken = follows.leave(u, who, what, by=u.by)
            return {"session": who, "thread": what, "left": True}, woken

        done, woken = await self.units.write(unit)
        self.woken(woken)
        return done


def _shown(rule: Rule, hits: dict[str, int], *, built_in: bool) -> dict[str, object]:
    return {
        "name": rule.name,
        "verdict": rule.verdict.value,
        "urgent": rule.urgent,
        "hits": hits.get(rule.name, 0),
        "built_in": built_in,
    }


def _session(c: Connection, prefix: str) -> str:
    """Return the session that an id means: its own, or its work item's."""
    return _meant(c, prefix, {"session": "id", "work": "session_id"})


def _thread(c: Connection, prefix: str) -> str:
    """Return the thread that an id means: its own, or that of a trigger or a work item."""
    return _meant(c, prefix, {"thread": "id", "trigger": "thread_id", "work": "thread_id"})


def _meant(c: Connection, prefix: str, columns: dict[str, str]) -> str:
    found = resolve(c, prefix)
    column = columns.get(found.kind)
    if column is None:
        raise NotNowError(found.id, f"this is a {found.kind}; name a {' or a '.join(columns)}")
    return str(row(c, found)[column])
