"""Messages about meetings (iTIP): what is newer counts, and from whom it must come."""

from __future__ import annotations

from typing import Final
from zoneinfo import ZoneInfo

import pytest

from upright.kit.calendar.itip import MAX_KNOWN, Known, Memory, News, Taken, take
from upright.kit.calendar.reader import read

LISBON: Final = ZoneInfo("Europe/Lisbon")
BOSS: Final = "boss@example.org"
ANN: Final = "ann@example.org"


def message(
    method: str, *lines: str, at: str = "08", sequence: int = 0, organizer: str = BOSS
) -> bytes:
    told = (
        *("BEGIN:VCALENDAR", f"METHOD:{method}", "BEGIN:VEVENT", "UID:m"),
        *(f"DTSTAMP:20260601T{at}0000Z", f"SEQUENCE:{sequence}"),
        *("DTSTART:20260610T140000Z", f"ORGANIZER:mailto:{organizer}"),
        *(f"ATTENDEE;PARTSTAT=ACCEPTED:mailto:{ANN}", *lines, "END:VEVENT", "END:VCALENDAR"),
    )
    return "\n".join(told).encode()


def hear(memory: Memory, data: bytes, sender: str = BOSS) -> Taken:
    return take(memory, read(data, user_zone=LISBON), sender=sender)


def news(*messages: bytes, sender: str = BOSS) -> list[str]:
    """Say what each message in turn is: its news, or why it is none."""
    memory, said = Memory(), list[str]()
    for data in messages:
        taken = hear(memory, data, sender)
        memory = Memory.read(taken.memory.plain())
        said += [change.news.value for change in taken.changes]
        said += [ignored.why for ignored in taken.ignored]
    return said


@pytest.mark.case("TU/5732")
@pytest.mark.feature("calendar.invitations")
def test_at_an_equal_sequence_the_stamp_decides() -> None:
    asked, changed = message("REQUEST", at="08"), message("REQUEST", at="09")
    off = message("CANCEL", at="10")
    assert news(asked, changed, off) == ["requested", "updated", "cancelled"]
    assert news(asked, off, changed) == ["requested", "cancelled", "it is older than what is known"]
    assert news(changed, asked, off)[1:] == ["it is older than what is known", "cancelled"]
    assert news(asked, asked) == ["requested", "it says what is known already"]


def test_a_higher_sequence_counts_whatever_its_stamp_says() -> None:
    assert news(message("REQUEST", at="09"), message("REQUEST", at="08", sequence=1)) == [
        "requested",
        "updated",
    ]


def test_a_meeting_is_cancelled_in_the_second_of_its_last_change() -> None:
    same = message("REQUEST"), message("CANCEL"), message("CANCEL")
    assert news(*same) == ["requested", "cancelled", "it says what is known already"]


def test_what_was_cancelled_and_is_asked_for_again_is_a_new_request() -> None:
    again = message("REQUEST", at="09", sequence=2)
    assert news(message("REQUEST"), message("CANCEL", sequence=1), again)[-1] == "requested"


@pytest.mark.feature("calendar.invitations")
def test_only_the_organizer_invites_changes_and_cancels() -> None:
    assert "its organizer is boss" in news(message("REQUEST"), sender="eve@example.net")[0]
    forged = message("CANCEL", at="09", organizer="eve@example.net")
    memory = hear(Memory(), message("REQUEST")).memory
    taken = hear(memory, forged, "eve@example.net")
    assert not taken.changes
    assert "and was boss@example.org" in taken.ignored[0].why
    assert taken.memory == memory


def test_who_sends_for_the_organizer_may() -> None:
    data = message("REQUEST").replace(
        b"ORGANIZER:", b'ORGANIZER;SENT-BY="mailto:desk@example.org":'
    )
    assert news(data, sender="Desk@example.org") == ["requested"]


def test_an_instance_changes_by_itself_and_never_against_a_newer_series() -> None:
    instance = "RECURRENCE-ID:20260617T140000Z"
    asked = message("REQUEST", sequence=1)
    assert news(asked, message("REQUEST", instance, sequence=1)) == ["requested", "updated"]
    assert news(asked, message("REQUEST", instance, sequence=0))[1] == (
        "it is older than what is known of the series"
    )
    memory = hear(hear(Memory(), asked).memory, message("CANCEL", instance, sequence=2)).memory
    whole, one = memory.of("m"), memory.of("m", "20260617T140000Z")
    assert whole is not None
    assert one is not None
    assert (whole.cancelled, one.cancelled) == (False, True)


@pytest.mark.feature("calendar.invitations")
def test_an_answer_comes_from_somebody_invited_and_the_newest_counts() -> None:
    reply, late = message("REPLY", at="09"), message("REPLY", at="08")
    assert news(reply, late, sender=ANN) == ["answered", "it is older than what is known"]
    assert "none of those invited" in news(reply, sender="eve@example.net")[0]
    taken = hear(Memory(), message("COUNTER"), ANN)
    assert [(each.news, each.who.address) for each in taken.changes] == [(News.PROPOSED, ANN)]


@pytest.mark.parametrize("method", ["PUBLISH", "", "REFRESH", "NONSENSE"])
def test_what_is_no_word_about_a_meeting_of_ours_says_so(method: str) -> None:
    (why,) = news(message(method))
    assert "no word" in why


def test_without_an_organizer_nobody_invites() -> None:
    data = message("REQUEST").replace(f"ORGANIZER:mailto:{BOSS}\n".encode(), b"")
    assert news(data) == ["it names no organizer"]


def test_a_broken_part_is_reported_and_the_other_counts() -> None:
    broken = b"BEGIN:VEVENT\nUID:x\nDTSTART:never\nEND:VEVENT\nEND:VCALENDAR"
    said = news(message("REQUEST").replace(b"END:VCALENDAR", broken))
    assert said[0] == "requested"
    assert "DTSTART is no date" in said[1]


def test_the_memory_is_bounded_and_forgets_the_oldest() -> None:
    memory = Memory()
    for n in range(MAX_KNOWN + 1):
        memory = memory.with_(str(n), Known(organizer=BOSS))
    assert len(memory.known) == MAX_KNOWN
    assert "0" not in memory.known
    assert str(MAX_KNOWN) in memory.known


@pytest.mark.parametrize("plain", [None, [], {"k": 1}, {"k": ["a", "b", "c", "d", "e"]}])
def test_a_memory_that_cannot_be_read_is_empty(plain: object) -> None:
    assert Memory.read(plain) == Memory({})
