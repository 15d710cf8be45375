"""Real calendars, and cases written by hand, from ``../shared/data`` where it is."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime, time, timedelta
from email import message_from_bytes
from email.utils import parseaddr
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from fixtures.require import skip_or_fail
from upright.kit.calendar.event import Calendar
from upright.kit.calendar.itip import Memory, take
from upright.kit.calendar.moments import instant, spelled
from upright.kit.calendar.occur import Occurrence, Window, occurrences, series
from upright.kit.calendar.reader import read
from upright.kit.calendar.rules import RuleError
from upright.kit.calendar.words import iso

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT.parent / "shared" / "data"
ABSENT: Final = "corpus: shared/data does not lie beside the checkout"
needs_corpus = pytest.mark.skipif(not DATA.is_dir(), reason=ABSENT)
LISBON: Final = ZoneInfo("Europe/Lisbon")
TWO_YEARS: Final = timedelta(days=731)
FLOOR: Final = 0.95

# Files that are right by RFC 5545 as far as this reader looks, and yet not taken whole.
REJECTED: Final = {
    "ics/ical4j/invalid/13-moonphase.ics": "no END:VCALENDAR",  # it is cut off
    "ics/icalendar/calendars/broken_dtstart.ics": "DTSTART is no date",
    "ics/icalendar/calendars/issue_104_broken_calendar.ics": "no property",
    "ics/icalendar/calendars/issue_1081_invalid_start_valid_end.ics": "DTSTART is no date",
    "ics/icalendar/calendars/timezone_same_start_and_offset.ics": "without its BEGIN",
    "ics/node-ical/dst-transition-rules.ics": "no property",  # blanks before the first BEGIN
    "ics/node-ical/ms_timezones.ics": "there is no DTSTART",  # what was cut out took it along
}

# Where another library sees other starts, and why ours stand.
OTHERWISE: Final = {
    "ics/icalendar/calendars/invalid_duration.ics": "an unreadable length costs the length alone",
    "ics/ical4j/invalid/13-moonphase.ics": "events without a UID are kept",
    "ics/ical4j/valid/blalor.ics": "an exception counts although EXDATE names it, too",
    "ics/ical4j/valid/dst-only-vtimezone.ics": "a blank at the end of the UID",
    "ics/ical4j/valid/lotr-updated.ics": "UNTIL before the start: the start itself remains",
    "ics/khal/event_dt_mixed_awareness.ics": "a floating time is the user's, not its end's zone",
    "ics/khal/event_dtr_no_tz_exdatez.ics": "an unknown zone is the user's, not UTC",
    "ics/khal/tz_windows_format.ics": "Windows' New Zealand, not the file's made-up rules",
    "ics/node-ical/bad_custom_ms_tz.ics": "a negative length costs the length alone",
    "ics/node-ical/bad_custom_ms_tz2.ics": "a negative length costs the length alone",
    "ics/node-ical/daily-count-exdate-recurrence-id.ics": "its end lies before its start",
    "ics/node-ical/music-school-weekly-until.ics": "(GMT +01:00) is an offset",
    "ics/node-ical/test_date_duration.ics": "PT1W is a week",
    "ics/node-ical/test_with_int_tzid.ics": "the file's own zone `1` is followed",
    "ics/node-ical/yearly-recurring-unicode.ics": "a date is a date, whatever TZID stands by it",
}


def files() -> list[Path]:
    return sorted((DATA / "ics").rglob("*.ics")) or [DATA]


def name(path: Path) -> str:
    return path.relative_to(DATA).as_posix()


def loaded(path: Path) -> Calendar:
    return read(path.read_bytes(), user_zone=LISBON)


def follows_the_standard(path: Path) -> bool:
    """Tell whether each VEVENT says when it begins (RFC 5545, 3.6.1)."""
    text = path.read_bytes()
    events = re.findall(
        rb"^\s*BEGIN:VEVENT.*?END:VEVENT", text, re.DOTALL | re.MULTILINE | re.IGNORECASE
    )
    return bool(events) and all(
        re.search(rb"^\s*DTSTART", each, re.MULTILINE | re.IGNORECASE) for each in events
    )


def expanded(calendar: Calendar, window: Window) -> list[Occurrence]:
    found: list[Occurrence] = []
    for copies in series(calendar.events).values():
        try:
            found += occurrences(copies, window)
        except RuleError:
            continue  # one sentence, no other exception; counted by what the oracle says
    return found


def window_of(calendar: Calendar) -> Window:
    first = min(instant(each.start, LISBON) for each in calendar.events)
    return Window(since=first - timedelta(days=1), until=first + TWO_YEARS, zone=LISBON)


@needs_corpus
@pytest.mark.parametrize("path", files(), ids=name)
def test_nothing_leaves_the_reader_but_events_and_reasons(path: Path) -> None:
    calendar = loaded(path)
    assert all(each.why for each in calendar.broken)
    if calendar.events:
        expanded(calendar, window_of(calendar))


@needs_corpus
def test_calendars_that_follow_the_standard_are_taken_whole() -> None:
    right = [path for path in files() if follows_the_standard(path)]
    refused = {name(path): loaded(path).broken for path in right if loaded(path).broken}
    assert refused.keys() == REJECTED.keys()
    for path, broken in refused.items():
        assert REJECTED[path] in broken[0].why
    assert len(right) > 150
    assert 1 - len(refused) / len(right) >= FLOOR


@needs_corpus
@pytest.mark.may_block  # another program is asked
@pytest.mark.feature("calendar.recurrence")
def test_another_library_sees_the_same_starts() -> None:
    python = ROOT / ".venv-servers" / "bin" / "python"
    if not python.exists():
        skip_or_fail("recurring-ical-events", "make .venv-servers/.installed")
    ours, asked = {}, []
    for path in files():
        if (calendar := loaded(path)).events:
            window = window_of(calendar)
            found = expanded(calendar, window)
            ours[str(path)] = sorted([each.event.uid, spelled(each.first)] for each in found)
            asked.append([str(path), window.since.isoformat(), window.until.isoformat()])
    oracle = Path(__file__).with_name("oracles") / "recurring.py"
    answer = subprocess.run(
        [python, "-W", "ignore", oracle],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = {
        path: said["events"] for path, said in json.loads(answer.stdout).items() if "events" in said
    }
    differs = {name(Path(path)) for path, events in theirs.items() if events != ours[path]}
    assert differs == OTHERWISE.keys()
    assert len(theirs) - len(differs) >= 130


# ------------------------------------------------------------------ cases written by hand
def case(case_name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((DATA / "made" / f"{case_name}.expected.json").read_bytes())
    return value


def made(said: dict[str, Any], zone: ZoneInfo) -> tuple[Calendar, list[Occurrence]]:
    path = DATA / "made" / said["deliveries"][0]["file"]
    calendar = read(path.read_bytes(), user_zone=zone)
    since = datetime(2026, 9, 1, tzinfo=UTC)
    return calendar, expanded(calendar, Window(since=since, until=since + TWO_YEARS, zone=zone))


@needs_corpus
@pytest.mark.parametrize(
    "case_name", ["calendar-broken-middle", "calendar-weekly-over-dst", "calendar-windows-zone"]
)
def test_a_case_with_hours_is_read_as_it_says(case_name: str) -> None:
    said = case(case_name)
    calendar, found = made(said, ZoneInfo(said["setup"]["user_zone"]))
    for wanted in said["expected"]["events"]:
        own = [each for each in found if each.event.uid == wanted["uid"]]
        assert [
            {"local": f"{each.first:%Y-%m-%dT%H:%M:%S}", "utc": iso(each.start)} for each in own
        ] == wanted["occurrences"]
        event = own[0].event
        assert (event.summary, event.all_day) == (wanted["summary"], False)
        assert event.length == timedelta(minutes=wanted["minutes"])
        assert (
            f"{event.start.tzinfo if isinstance(event.start, datetime) else ''}" == wanted["zone"]
        )
        assert event.zone_as_written == wanted.get("zone_as_written", event.zone_as_written)
    assert len({each.event.uid for each in found}) == len(said["expected"]["events"])
    assert [each.uid for each in calendar.broken] == [b["uid"] for b in said["expected"]["broken"]]
    for broken, wanted in zip(calendar.broken, said["expected"]["broken"], strict=True):
        assert broken.why.startswith(wanted["why"])


@needs_corpus
@pytest.mark.parametrize("zone", ["America/Halifax", "Asia/Tokyo", "UTC"])
def test_the_days_of_a_case_are_the_same_in_every_zone(zone: str) -> None:
    said, here = case("calendar-all-day-weekly"), ZoneInfo(zone)
    _, found = made(said, here)
    (wanted,) = said["expected"]["events"]
    assert [
        {
            "first_day": str(each.first),
            "last_day": str(each.first + each.event.length - timedelta(days=1)),
        }
        for each in found
    ] == wanted["occurrences"]
    for view in said["expected"]["day_views"]:
        midnight = datetime.combine(datetime.fromisoformat(view["day"]), time(), tzinfo=here)
        day = Window(since=midnight, until=midnight + timedelta(days=1), zone=here)
        calendar, _ = made(said, here)
        assert [each.event.uid for each in expanded(calendar, day)] == view["in_each_zone"]


def heard(order: list[int]) -> tuple[Memory, list[dict[str, Any]]]:
    """Hear the mails of the case in some order, as the mail connector hands their parts over."""
    memory, triggers = Memory(), list[dict[str, Any]]()
    for number in order:
        mail = message_from_bytes((DATA / f"made/itip-equal-sequence.{number}.eml").read_bytes())
        part = next(each for each in mail.walk() if each.get_content_type() == "text/calendar")
        body = part.get_payload(decode=True)
        assert isinstance(body, bytes)
        calendar = read(body, user_zone=LISBON)
        taken = take(memory, calendar, sender=parseaddr(mail["From"])[1])
        memory = Memory.read(json.loads(json.dumps(taken.memory.plain())))
        for change in taken.changes:
            start, before = change.event.start, change.before
            assert isinstance(start, datetime)
            triggers.append(
                {
                    "from": [number],
                    "kind": f"meeting.{change.news}",
                    "title": change.event.summary,
                    "start": {"local": f"{start:%Y-%m-%dT%H:%M:%S}", "utc": iso(start)},
                    "thread_key": {"uid": change.event.uid},
                    "edit_of": before and {"uid": change.event.uid, "dtstamp": before.stamp},
                    "occurred_at": iso(change.event.stamp) if change.event.stamp else "",
                }
            )
    return memory, triggers


def state(memory: Memory) -> str:
    known = memory.of("harbor-review-7f3@example.net")
    assert known is not None
    if known.cancelled:
        return "cancelled"
    at = datetime.fromisoformat(known.start).astimezone(LISBON)
    return f"confirmed {at:%H:%M}"


def starts(memory: Memory) -> list[str]:
    """Return when "the meeting starts" would be fired: never for what is cancelled."""
    known = [each for each in memory.known.values() if not each.cancelled]
    return [iso(datetime.fromisoformat(each.start)) for each in known]


@needs_corpus
@pytest.mark.case("TU/5732")
@pytest.mark.feature("calendar.invitations")
def test_invitations_with_an_equal_sequence_are_told_apart_by_their_stamps() -> None:
    said = case("itip-equal-sequence")["expected"]
    _, triggers = heard([1, 2, 3])
    for ours, wanted in zip(triggers, said["triggers"], strict=True):
        assert {key: wanted[key] for key in ours} == ours
    for count in (1, 2, 3):
        memory, _ = heard(list(range(1, count + 1)))
        assert state(memory) == said["state_after"][str(count)]
        assert starts(memory) == said["timers"][f"after_{count}"]
    for other in said["other_orders"]:
        assert state(heard(other["order"])[0]) == other["state_after_all"]
        if "after_1" in other:
            until = other["order"].index(1) + 1
            assert state(heard(other["order"][:until])[0]) == other["after_1"]
