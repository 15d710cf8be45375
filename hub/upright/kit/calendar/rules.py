"""Rules: a recurrence rule's instances between two local times (RFC 5545, 3.3.10).

dateutil counts them; around it stands what it lacks: an end to rules that never match, a start near
the window for old ones, UNTIL in another form than the start, and a bound for the dense.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Final

from dateutil.rrule import rrulestr

from upright.kit.calendar.moments import MomentError, moment

MAX_PER_RULE: Final = 3_000  # instances within one window
MAX_STEPS: Final = 50_000  # instances of a counted rule until the window's end
DENSE: Final = timedelta(days=2)  # how far ahead rules by the minute and second are followed
_PERIOD_S: Final = {
    "SECONDLY": 1,
    "MINUTELY": 60,
    "HOURLY": 3_600,
    "DAILY": 86_400,
    "WEEKLY": 604_800,
}
_KNOWN: Final = frozenset(
    {
        *("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYSETPOS", "BYMONTH", "BYMONTHDAY"),
        *("BYYEARDAY", "BYWEEKNO", "BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND"),
    }
)
_ERA: Final = timedelta(days=146_097)  # 400 years, after which all dates and weekdays come again
_LAST_YEAR: Final = 9_990


class RuleError(ValueError):
    """A recurrence rule can't be followed."""


def follow(
    text: str, start: date | datetime, since: datetime, until: datetime
) -> list[date | datetime]:
    """Return a rule's instances from *since* to *until*, at most MAX_PER_RULE, in order.

    Both are naive, in the zone of *start*; what is returned has that zone, or is dates.

    Raises:
        RuleError: it can't be read, or has too many instances before the window.
    """
    try:
        found = list(islice(_instances(text, start, since, until), MAX_PER_RULE))
    except RuleError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
        # dateutil's reader has no one error of its own
        problem = f"the rule {text[:60]!r} can't be read: {error}"
        raise RuleError(problem) from error
    if isinstance(start, datetime):
        return [at.replace(tzinfo=start.tzinfo) for at in found]
    return [at.date() for at in found]


def _instances(
    text: str, start: date | datetime, since: datetime, until: datetime
) -> Iterator[datetime]:
    parts, begin = dict(_parts(text)), _local(start)
    count = int(parts.pop("COUNT")) if "COUNT" in parts else None
    end = min(_until(parts.pop("UNTIL", ""), start) or until, until)
    period_s = _PERIOD_S.get(parts.get("FREQ", ""), 0) * max(int(parts.get("INTERVAL", "1")), 1)
    if parts.get("FREQ") in {"SECONDLY", "MINUTELY"}:
        end = min(end, max(since, begin) + DENSE)
    if count is None and period_s and begin < since:
        # Whole periods before the window needn't be counted one by one.
        begin += timedelta(seconds=(since - begin).total_seconds() // period_s * period_s)
    if end < begin:
        return
    for number, at in enumerate(islice(_bounded(parts, begin, end), count)):
        if number > MAX_STEPS:
            problem = f"a rule of more than {MAX_STEPS} instances: {text[:60]!r}"
            raise RuleError(problem)
        if at >= since:
            yield at


def _bounded(parts: dict[str, str], begin: datetime, end: datetime) -> Iterator[datetime]:
    """Yield instances up to *end*, counted at the end of dateutil's world.

    It goes on to the year 9999 where nothing matches. Moved there by whole eras, in which every
    date has its weekday again, that is some centuries instead of eighty.
    """
    eras = _ERA * max((_LAST_YEAR - end.year) // 400, 0)
    bare = ";".join(f"{name}={value}" for name, value in parts.items())
    rule: Iterable[datetime] = rrulestr(bare, dtstart=begin + eras)
    for at in rule:
        if at - eras > end:
            return
        yield at - eras


def _parts(text: str) -> Iterator[tuple[str, str]]:
    for part in text.strip().upper().split(";"):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if equals and value and name in _KNOWN:
            yield name, value.replace(" ", "")


def _local(start: date | datetime) -> datetime:
    if isinstance(start, datetime):
        return start.replace(tzinfo=None, fold=0)
    return datetime.combine(start, time())


def _until(text: str, start: date | datetime) -> datetime | None:
    """Return a rule's end in local time; a date takes in the whole day.

    Raises:
        RuleError: it is no date.
    """
    if not text:
        return None
    try:
        at = moment(text)
    except MomentError as error:
        raise RuleError(str(error)) from error
    if not isinstance(at, datetime):
        return datetime.combine(at, time(23, 59, 59))
    if at.tzinfo is not None and isinstance(start, datetime):
        at = at.astimezone(start.tzinfo)
    return at.replace(tzinfo=None)
