"""What changed between two looks, beyond what the tests on real servers show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from upright.kit.calendar.event import Event
from upright_calendar.copies import Copy, Look
from upright_calendar.diff import What, differences, snapshot
from upright_calendar.state import MAX_KNOWN, CursorLostError, Known, State, decode

NOW: Final = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)


def copy(uid: str, *, hours: int = 24, summary: str = "x") -> Copy:
    event = Event(uid=uid, start=NOW + hours * HOUR, length=HOUR, summary=summary)
    return Copy(uid=uid, events=(event,))


def look(*copies: Copy) -> Look:
    return Look(copies={each.uid: each for each in copies})


def told(known: dict[str, Known], seen: Look) -> tuple[list[str], dict[str, Known]]:
    changes, after = differences(known, seen, NOW, UTC)
    return [f"{each.what} {each.known.uid}" for each in changes], after


def test_over_the_bound_the_far_future_is_not_told_and_not_told_again() -> None:
    crowd = [copy(f"e{n:05d}", hours=n + 24) for n in range(MAX_KNOWN)]
    far = copy("far", hours=MAX_KNOWN + 100)
    known = snapshot(look(*crowd), NOW, UTC)
    for _ in range(2):
        said, known = told(known, look(*crowd, far))
        assert said == []
    assert len(known) == MAX_KNOWN
    said, known = told(known, look(*crowd[1:], far))
    assert sorted(said) == ["created far", "deleted e00000"]


def test_a_change_back_has_another_revision() -> None:
    one, two = look(copy("a", summary="one")), look(copy("a", summary="two"))
    known = snapshot(one, NOW, UTC)
    revisions: list[int] = []
    for seen in (two, one, two):
        (change,), known = differences(known, seen, NOW, UTC)
        assert change.what is What.UPDATED
        revisions.append(change.known.revision)
    assert len(set(revisions)) == 3


def test_what_is_over_is_forgotten_and_its_deletion_is_no_news() -> None:
    known = snapshot(look(copy("a")), NOW, UTC)
    changes, after = differences(known, look(), NOW + timedelta(days=4), UTC)
    assert (changes, after) == ([], {})


def test_what_cannot_be_read_stands_as_it_was() -> None:
    known = snapshot(look(copy("a")), NOW, UTC)
    blind = Look(copies={}, unread=frozenset({"a"}))
    assert differences(known, blind, NOW, UTC) == ([], known)


def test_the_cursor_says_what_it_was_told() -> None:
    state = State(settled=NOW, known=snapshot(look(copy("a"), copy("b")), NOW, UTC))
    assert decode(state.encode()) == state


@pytest.mark.parametrize("cursor", ["", "[]", "{}", '{"v":2}', '{"v":1,"settled":"x","known":{}}'])
def test_a_cursor_of_another_sort_is_lost(cursor: str) -> None:
    with pytest.raises(CursorLostError):
        decode(cursor)
