"""The timer source: fired once, over restarts, sleep and a clock that is set back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from fixtures.connector import MemoryContext
from upright.api import (
    Address,
    Channel,
    ConnectorNotReadyError,
    Destination,
    Effect,
    InboundRequest,
    PermanentSendError,
    Trigger,
    TriggerRejectedError,
)
from upright_timer.connector import TimerConnector
from upright_timer.settings import Misfire, TimerLine, TimerSettings

MORNING: Final = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)


class OverError(Exception):
    """The virtual day is over."""


@dataclass(slots=True, kw_only=True)
class Day(MemoryContext):
    """A wall clock that runs in jumps: it may sleep over a span, and be set back."""

    ends: datetime = MORNING
    asleep: list[tuple[datetime, datetime]] = field(default_factory=list)
    set_back: dict[datetime, datetime] = field(default_factory=dict)
    fired_at: list[datetime] = field(default_factory=list)

    async def emit(self, triggers: Sequence[Trigger], *, cursor: str | None = None) -> None:
        self.fired_at += [self.at for _ in triggers]
        await MemoryContext.emit(self, triggers, cursor=cursor)

    async def sleep(self, seconds: float) -> None:
        assert 0 <= seconds <= 60
        at = self.at + timedelta(seconds=seconds)
        for moment, earlier in list(self.set_back.items()):
            if self.at < moment <= at:
                del self.set_back[moment]
                self.at = earlier
                return
        for begin, end in self.asleep:
            if begin < at <= end:
                at = end
        self.at = max(self.at, at)
        if self.at > self.ends and not self.set_back:
            raise OverError
        await asyncio.sleep(0)


def line(when: str = "*/15 * * * *", **more: object) -> TimerLine:
    settings: dict[str, Any] = {"name": "tick", "when": when, **more}
    return TimerLine(**settings)


async def live(day: Day, *lines: TimerLine, until: str) -> list[str]:
    """Let a source live until a local time; return when what was fired was due."""
    before = len(day.emitted)
    day.ends = day.at.replace(hour=0, minute=0) + hours(until)
    connector = TimerConnector("clock", TimerSettings(lines=lines))
    await connector.start(day)
    with suppress(OverError):
        await connector.listen()
    await connector.stop(timeout_s=1)
    day.at = day.ends
    return [due(trigger) for trigger in day.emitted[before:]]


def hours(text: str) -> timedelta:
    hour, minute = text.split(":")
    return timedelta(hours=int(hour), minutes=int(minute))


def due(trigger: Trigger) -> str:
    assert trigger.occurred_at is not None
    facts = dict(trigger.context.facts)
    missed = f" after {facts['missed']} missed" if "missed" in facts else ""
    return f"{trigger.occurred_at:%H:%M}{missed}{' late' if 'late' in facts else ''}"


def fresh(**more: object) -> Day:
    settings: dict[str, Any] = {"source": "clock", "at": MORNING, **more}
    return Day(**settings)


async def test_the_first_start_fires_nothing_of_the_past_and_then_each_time_once() -> None:
    day = fresh()
    assert await live(day, line(), until="10:50") == ["10:15", "10:30", "10:45"]
    assert [f"{at:%H:%M}" for at in day.fired_at] == ["10:15", "10:30", "10:45"]
    keys = [key for trigger in day.emitted for key in trigger.dedupe]
    assert len(set(keys)) == 3


async def test_a_restart_fires_nothing_twice_and_nothing_is_left_out() -> None:
    day = fresh()
    found: list[str] = []
    for until in ("10:14", "10:15", "10:16", "10:30", "10:31", "10:46"):
        found += await live(day, line(), until=until)
    assert found == ["10:15", "10:30", "10:45"]


@pytest.mark.case("DB/803")
@pytest.mark.parametrize(
    ("misfire", "fired"),
    [
        (Misfire.RUN_ONCE, ["10:15", "13:30 after 12 missed late", "13:45"]),
        (Misfire.SKIP, ["10:15", "13:45"]),
        (
            Misfire.RUN_ALL,
            [
                "10:15",
                *(f"{m // 60:02}:{m % 60:02} late" for m in range(630, 825, 15)),
                "13:45",
            ],
        ),
    ],
)
@pytest.mark.feature("timer.misfire")
async def test_after_three_hours_of_sleep_each_policy_holds(
    misfire: Misfire, fired: list[str]
) -> None:
    day = fresh(asleep=[(MORNING + hours("0:16"), MORNING + hours("3:38"))])
    assert await live(day, line(misfire=misfire), until="13:50") == fired


async def test_a_small_delay_is_no_missed_run() -> None:
    day = fresh(asleep=[(MORNING + hours("0:16"), MORNING + hours("0:33"))])
    assert await live(day, line(misfire=Misfire.SKIP), until="10:40") == ["10:15", "10:30"]


async def test_a_hub_that_was_down_catches_up_by_policy_and_marks_it_late() -> None:
    day = fresh()
    await live(day, line(), until="10:16")
    day.pass_time(5 * 3600 + 600)
    assert await live(day, line(), until="15:31") == ["15:15 after 19 missed late", "15:30"]


async def test_very_many_missed_runs_are_one_trigger_and_soon_counted() -> None:
    day = fresh()
    await live(day, line("* * * * *"), until="10:01")
    day.pass_time(30 * 86_400)
    assert await live(day, line("* * * * *"), until="10:01") == ["10:01 after 9999+ missed"]


@pytest.mark.feature("timer.clock")
async def test_when_the_clock_is_set_back_an_interval_goes_on() -> None:
    back = {MORNING + hours("0:40"): MORNING - hours("2:00")}
    day = fresh(set_back=back)
    found = await live(day, line("every 15 minutes"), until="10:16")
    assert found[:2] == ["10:15", "10:30"]
    assert found[2] in {"08:15", "08:16"}
    assert len(found) == 11
    assert len({trigger.dedupe for trigger in day.emitted}) == len(day.emitted)


@pytest.mark.feature("timer.clock")
async def test_when_the_clock_is_set_back_a_cron_line_waits_for_hours_at_most() -> None:
    little = fresh(set_back={MORNING + hours("0:40"): MORNING - hours("1:00")})
    assert await live(little, line(), until="10:50") == ["10:15", "10:30", "10:45"]
    much = fresh(set_back={MORNING + hours("0:40"): MORNING - hours("9:00")})
    found = await live(much, line("0 * * * *"), until="3:30")
    assert found == ["02:00", "03:00"]


async def test_a_new_a_changed_and_a_resumed_line_begin_now() -> None:
    day = fresh()
    first, second = line("0 * * * *"), line("30 * * * *", name="other")
    await live(day, first, until="10:10")
    day.pass_time(3 * 3600)
    assert await live(day, first, second, until="13:20") == ["13:00 after 2 missed late"]
    changed = line("5 * * * *")
    assert await live(day, changed, second, until="13:40") == ["13:30"]
    await live(day, changed, line("30 * * * *", name="other", paused=True), until="15:40")
    assert [due(each) for each in day.emitted[-2:]] == ["14:05", "15:05"]
    assert await live(day, changed, second, until="15:59") == []


@pytest.mark.feature("timer.overlap")
async def test_jitter_puts_each_run_off_by_the_same_span_every_time() -> None:
    day = fresh()
    assert await live(day, line("0 * * * *", jitter_s=600.0), until="12:59") == ["11:00", "12:00"]
    offsets = [at - MORNING - timedelta(hours=n + 1) for n, at in enumerate(day.fired_at)]
    assert all(timedelta() < each < timedelta(seconds=600) for each in offsets)
    assert offsets[0] != offsets[1]
    again = fresh()
    await live(again, line("0 * * * *", jitter_s=600.0), until="12:59")
    assert again.fired_at == day.fired_at


async def test_a_lost_cursor_replays_nothing_and_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    day = fresh()
    day.cursors.append('{"v": 99}')
    assert await live(day, line(), until="10:20") == ["10:15"]
    assert [record.message for record in caplog.records] == ["timer.cursor_lost"]


async def test_a_trigger_says_which_line_why_and_for_whom() -> None:
    day = fresh()
    told = line(title="Stand-up", text="Say good morning.", agent="router", by="nadia")
    await live(day, told, until="10:20")
    (trigger,) = day.emitted
    assert (trigger.kind, trigger.channel) == ("timer.due", Channel.TIMER)
    assert (trigger.content.title, trigger.content.text) == ("Stand-up", "Say good morning.")
    assert (trigger.actor.id, trigger.context.address) == ("nadia", Address.DIRECT)
    assert trigger.context.thread == "timer:tick"
    facts = dict(trigger.context.facts)
    assert (facts["timer"], facts["agent"]) == ("tick", "router")
    assert facts["due_local"] == "2026-06-01 10:15:00 (UTC)"


@pytest.mark.feature("timer.preview")
async def test_a_look_shows_the_next_five_times() -> None:
    connector = TimerConnector(
        "clock",
        TimerSettings(
            zone="Europe/Lisbon", lines=(line("0 9 * * *"), line(name="off", paused=True))
        ),
    )
    with pytest.raises(ConnectorNotReadyError):
        await connector.validate()
    await connector.start(fresh())
    probe = await connector.validate()
    assert probe.summary.startswith("tick: 2026-06-02 09:00 WEST, 2026-06-03 09:00 WEST")
    assert probe.summary.count("09:00") == 5
    assert probe.summary.endswith("off: paused")


async def test_what_a_timer_cannot_do_it_refuses() -> None:
    connector = TimerConnector("clock", TimerSettings(lines=(line(),)))
    with pytest.raises(TriggerRejectedError):
        await connector.receive(InboundRequest(headers={}, body=b""))
    where = Destination(source="clock", kind="note", address=())
    with pytest.raises(PermanentSendError):
        await connector.send(Effect(id="e", destination=where, text="x", idempotency_key="k"))
    assert [each async for each in connector.backfill(None, MORNING)] == []
    assert connector.capabilities().listens
