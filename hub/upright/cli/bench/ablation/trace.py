"""Trace: what happens outside in one run: tasks that are asked for, and what follows each.

A trace is drawn from its seed alone. A task's first follow-ups are the same however many there
are, and each slow tool takes as long in every arm: runs of one seed are paired.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from upright.api import (
    Actor,
    ActorKind,
    Address,
    Channel,
    Code,
    Content,
    Context,
    Destination,
    Trigger,
)
from upright.cli.bench.draw import Dice

SOURCE: Final = "github"
REPOSITORY: Final = "acme/app"
URL: Final = "https://git.example.org/acme/app.git"
CI: Final = Actor(id="ci", name="CI", kind=ActorKind.BOT)
MEMBERS: Final = ("ann", "ben", "cleo", "dan")
ASKED: Final = "comment.asked"
SAID: Final = "comment.created"
RED: Final = "ci.failed"
QUICK: Final = 2  # commands of each task that end at once
SLOW: Final = 2
_ALONE_ONE_IN: Final = 3  # the others come right behind the one before, as checks of one push do
_WORDS: Final = (
    *("the", "test", "build", "fails", "when", "cache", "queue", "is", "empty", "again"),
    *("please", "look", "at", "parser", "timeout", "retry", "ledger", "row", "order", "since"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """A trigger, and when it comes, in seconds from the beginning."""

    at_s: float
    trigger: Trigger


def draw(seed: int, tasks: int, follow_ups: float) -> list[Happening]:
    """Draw a trace, in its order; of half a follow-up a task, every second task has one."""
    found = [one for task in _tasks(seed, tasks, follow_ups) for one in task]
    return sorted(found, key=lambda one: one.at_s)


def seconds(seed: int, task: str, command: str) -> float:
    """Return how long a task's command takes; quick ones end before a turn has waited for them."""
    dice = Dice(_seed(seed, f"{task} {command}"))
    if command.startswith("look"):
        return 0.5 + dice.below(2_000) / 1000
    return 30.0 + dice.below(420_000) / 1000


@lru_cache(maxsize=1024)
def printed(seed: int, task: str, command: str) -> str:
    """Return what a task's command prints: from one to five kilobytes."""
    dice = Dice(_seed(seed, f"{command} {task}"))
    return prose(dice, 160 + dice.below(640))


def prose(dice: Dice, words: int) -> str:
    """Write some words, in lines."""
    said = [_WORDS[dice.below(len(_WORDS))] for _ in range(words)]
    return "\n".join(" ".join(said[at : at + 12]) for at in range(0, words, 12))


def _seed(seed: int, what: str) -> int:
    return int.from_bytes(f"{seed} {what}".encode())


def _tasks(seed: int, tasks: int, follow_ups: float) -> Iterator[Iterator[Happening]]:
    dice, at_s = Dice(_seed(seed, "tasks")), 10.0
    for number in range(tasks):
        rounds = int(follow_ups) if follow_ups >= 1 or number % 2 else round(2 * follow_ups)
        yield _task(seed, number, at_s, rounds)
        at_s += 30 + dice.below(370_000) / 1000


def _task(seed: int, number: int, at_s: float, rounds: int) -> Iterator[Happening]:
    dice = Dice(_seed(seed, f"task {number}"))
    asked = f"{prose(dice, 60 + dice.below(120))}\ntask={number} rounds={rounds}"
    member = Actor(id=MEMBERS[dice.below(len(MEMBERS))])
    yield Happening(at_s=at_s, trigger=_trigger(ASKED, member, asked, number=number))
    for turn in range(1, rounds + 1):
        is_burst = turn > 1 and dice.below(_ALONE_ONE_IN) > 0
        at_s += 0.2 + dice.below(1_500) / 1000 if is_burst else 60 + dice.below(840_000) / 1000
        by, kind = (CI, RED) if dice.below(2) else (Actor(id=MEMBERS[dice.below(4)]), SAID)
        text = f"round={turn}\n{prose(dice, 40 + dice.below(160))}"
        yield Happening(at_s=at_s, trigger=_trigger(kind, by, text, number=number, turn=turn))


def _trigger(kind: str, by: Actor, text: str, *, number: int, turn: int = 0) -> Trigger:
    pull = 100 + number
    return Trigger(
        kind=kind,
        channel=Channel.CI if by is CI else Channel.GITHUB,
        actor=by,
        content=Content(title=f"{kind} on pull request {pull}", text=text),
        context=Context(
            thread=f"pr:{pull}",
            address=Address.MENTION if kind == ASKED else Address.NONE,
            reply_to=Destination(source=SOURCE, kind="comment", address=(("number", str(pull)),)),
            code=Code(repository=REPOSITORY, urls=(URL,), sha="c0ffee0", branch=f"fix-{number}"),
        ),
        dedupe=(f"{pull}:{turn}",),
    )
