"""Remarks: what other sources know of a trigger stands in its facts."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from fixtures.still_hub import trigger
from upright.api import Capabilities, Trigger
from upright.plugin.remarks import MOST, remarked


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
