"""Remarks: what other sources know of a trigger stands in its facts."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from fixtures.eventually import eventually_awaited
from fixtures.still_hub import trigger
from upright.api import Capabilities, Trigger
from upright.plugin.remarks import AT_ONCE, MOST, Remarks, remarked


@dataclass
class Source:
    """A source that says something, or breaks."""

    says: tuple[tuple[str, str], ...] = ()
    breaks: Exception | None = None
    blind: Exception | None = None
    remarks_made: bool = True
    asked: list[Trigger] = field(default_factory=list)

    def capabilities(self) -> Capabilities:
        if self.blind:
            raise self.blind
        return Capabilities(remarks=self.remarks_made)

    def remarks(self, trigger: Trigger) -> tuple[tuple[str, str], ...]:
        self.asked.append(trigger)
        if self.breaks:
            raise self.breaks
        return self.says


MAIL = trigger("meeting.requested", native="m1")


def facts(lives: dict[str, Source], source: str = "mail") -> tuple[tuple[str, str], ...]:
    (told,) = remarked(lives, source, (MAIL,))
    return told.context.facts


def test_what_others_know_is_added_and_nothing_else_changes() -> None:
    calendar = Source(says=(("conflicts", "1"), ("conflict", "Dentist")))
    (told,) = remarked({"mail": Source(says=(("x", "y"),)), "cal": calendar}, "mail", (MAIL,))
    assert told.context.facts == (("conflicts", "1"), ("conflict", "Dentist"))
    assert (told.kind, told.dedupe, told.content) == (MAIL.kind, MAIL.dedupe, MAIL.content)


def test_nobody_remarks_on_itself_and_who_makes_none_is_not_asked() -> None:
    own, mute = Source(says=(("x", "y"),)), Source(remarks_made=False)
    assert remarked({"mail": own, "mute": mute}, "mail", (MAIL,)) == (MAIL,)
    assert own.asked == mute.asked == []


@pytest.mark.parametrize(
    "broken", [Source(breaks=RuntimeError("oh")), Source(blind=RuntimeError("oh"))]
)
def test_a_source_that_breaks_takes_nothing_along(
    broken: Source, caplog: pytest.LogCaptureFixture
) -> None:
    lives = {"bad": broken, "cal": Source(says=(("conflicts", "1"),))}
    assert facts(lives) == (("conflicts", "1"),)
    assert [record.message for record in caplog.records] == ["source.remarks_broke"]


def test_the_remarks_of_one_source_are_bounded() -> None:
    assert len(facts({"cal": Source(says=(("a", "b"),) * 50)})) == MOST


# ------------------------------------------------------------------ off the event loop
@dataclass
class Slow(Source):
    """A source that looks until it is let go, as at a rule that recurs without end."""

    let_go: threading.Event = field(default_factory=threading.Event)

    def remarks(self, trigger: Trigger) -> tuple[tuple[str, str], ...]:
        self.asked.append(trigger)
        self.let_go.wait(20)
        return self.says


@pytest.mark.clause("B2.6")
async def test_who_looks_too_long_holds_up_neither_the_loop_nor_what_came() -> None:
    slow = Slow(says=(("x", "y"),))
    asks = Remarks({"cal": slow}, within_s=0.01)
    try:
        for _ in range(AT_ONCE):
            assert await asks("mail", (MAIL,)) == (MAIL,)
        assert await asks("mail", (MAIL,)) == (MAIL,)  # no thread is left to look
        assert len(slow.asked) == AT_ONCE
    finally:
        slow.let_go.set()
    quick = Remarks({"cal": Source(says=(("x", "y"),))})
    (told,) = await quick("mail", (MAIL,))
    assert told.context.facts == (("x", "y"),)


async def test_a_late_thread_that_has_ended_makes_room_again() -> None:
    slow = Slow(says=(("x", "y"),))
    asks = Remarks({"cal": slow}, within_s=0.01)
    for _ in range(AT_ONCE):
        await asks("mail", (MAIL,))
    slow.let_go.set()

    async def told() -> bool:
        (one,) = await asks("mail", (MAIL,))
        return one.context.facts == (("x", "y"),)

    await eventually_awaited(told)


async def test_where_nobody_remarks_nobody_is_asked() -> None:
    assert await Remarks({"mail": Source()})("mail", (MAIL,)) == (MAIL,)
