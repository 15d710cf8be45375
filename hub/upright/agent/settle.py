"""Settle: how a turn ends: at rest, unsettled, failed or interrupted; nothing sleeps in silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from upright.agent.spending import in_vain
from upright.agent.state import Turn
from upright.agent.steps import about
from upright.agent.tools.base import After
from upright.api import Channel
from upright.core.backoff import Backoff
from upright.core.transcript import Role
from upright.core.turn import Ending
from upright.core.wait import OnDeadline, WaitKind
from upright.core.work import TERMINAL, WorkItem, WorkState
from upright.engine.ports import Reckoned
from upright.store import intake, jobs, requests, sessions, turns, waits, work
from upright.store.events import record
from upright.store.holds import MODEL
from upright.store.unit import Unit

HELD: Final = "held"
BACKOFF: Final = Backoff(base_s=1.0, cap_s=300.0)
_WHY: Final = {
    Ending.UNSETTLED: "The worker stopped without saying what it waits for. What now?",
    Ending.NO_PROGRESS: "The worker does the same thing again and again. What now?",
    Ending.TOO_LONG: "The worker has used up the steps of one turn. Shall it go on?",
}


def rest(u: Unit, turn: Turn, ending: Ending, reason: str = "") -> After:
    """End a turn: the item takes its waiting state, or is over, or a person is asked.

    *reason* says which bound it reached, if it did (B13.1).
    """
    why = f"{_WHY.get(ending, '')} {reason}".strip()
    after = After(timers=True)
    item = work.read(u.c, turn.work) if turn.work else None
    over = item is not None and item.state in TERMINAL
    if item is not None and not over:
        _wait_for_jobs(u, turn, item)
        if ending in _WHY:
            work.ask(u, item, f"{why}\n\n{_last_words(turn)}".strip())
        _look_again(u, turn, work.rest(u, work.read(u.c, item.id)))
    elif item is None and ending in _WHY:
        question = f"The router stopped: {ending.value} {reason}.\n\n{_last_words(turn)}".strip()
        requests.ask(u, requests.Asking(prompt=question, session=turn.claim.session))
    _end(u, turn, ending.value, _Next(over=over, reason=reason))
    if over:
        after.sessions.update(intake.fall_back(u, turn.claim.session))
    return after


def _look_again(u: Unit, turn: Turn, item: WorkItem) -> None:
    """Wake an item that rests on nothing: what it waited for came, and was taken from its inbox.

    So it goes when its worker follows the thread no more by the time the turn ends.
    """
    if item.state is not WorkState.RUNNABLE or sessions.inbox(u.c, item.session).waking:
        return
    notice = intake.Notice(
        kind="wait.gone",
        channel=Channel.OPERATOR,
        title="what you waited for came, and went to somebody else: you don't follow it any more",
        text="",
        dedupe=(f"gone:{turn.id}",),
    )
    intake.notify(u, item.session, item.thread, notice)


def _wait_for_jobs(u: Unit, turn: Turn, item: WorkItem) -> None:
    """Let a turn that ends while its jobs run wait for them, each with a deadline."""
    waited = {wait.ref for wait in waits.open_of(u.c, item.id) if wait.kind is WaitKind.JOB}
    live = [job for job in jobs.of_session(u.c, turn.claim.session) if not job.over]
    if item.state is not WorkState.RUNNABLE:
        return
    for job in live:
        jobs.into_background(u, job)
        if job.id not in waited:
            why = f"job {job.id} to end"
            waits.register(u, item.id, waits.Asked(kind=WaitKind.JOB, ref=job.id, why=why))


def _last_words(turn: Turn) -> str:
    said = [m.text for m in turn.messages if m.role is Role.ASSISTANT and m.text]
    return said[-1][:2000] if said else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Next:
    """What follows a turn: another at a time, or none ever, or what its inbox says."""

    retry_at_ms: int | None = None
    over: bool = False
    reason: str = ""


_INBOX: Final = _Next()


def _end(u: Unit, turn: Turn, ending: str, then: _Next = _INBOX) -> None:
    turns.end(u, turn.id, ending=ending, steps=turn.steps)
    sessions.finish(u, turn.claim, retry_at_ms=then.retry_at_ms, end=then.over)
    if turn.work is not None and work.read(u.c, turn.work).state is WorkState.BLOCKED:
        sessions.park(u.c, turn.claim.session)
    told = {"ending": ending, "steps": turn.steps}
    record(u, "turn.ended", about(turn), {**told, "reason": then.reason} if then.reason else told)


# ------------------------------------------------------------------ the model failed
@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why the model gave nothing; ``retries`` says that the same request may work later.

    ``attempts`` were made, and ``wasted`` is what they are thought to have used.
    """

    code: str
    reason: str
    retry_after_s: float | None
    retries: bool
    roll: float
    attempts: int = 0
    wasted: Reckoned | None = None


def failed(u: Unit, turn: Turn, failure: Failure) -> None:
    """End a turn whose model failed: wait for it with a growing pause, or ask a person."""
    turn.failures += 1
    if failure.wasted is not None:
        in_vain(u, turn, failure.wasted, tries=failure.attempts)
    sessions.update(u.c, turn.claim, failures=turn.failures)
    item = work.read(u.c, turn.work) if turn.work else None
    why = f"the model ({failure.code}): {failure.reason}"[:500]
    retry_at_ms = None
    if failure.retries:
        delay_s = BACKOFF.delay_s(
            turn.failures, roll=failure.roll, at_least_s=failure.retry_after_s
        )
        retry_at_ms = u.now_ms + int(1000 * delay_s)
        if item is not None:
            _wait_for_model(u, item, why)
    elif item is not None:
        work.ask(u, item, f"The model refuses: {failure.reason}. Mend it, then answer to go on.")
    else:
        question = f"The model refuses the router: {failure.reason}. Mend it, then answer."
        requests.ask(u, requests.Asking(prompt=question, session=turn.claim.session))
    if item is not None:
        work.rest(u, work.read(u.c, item.id))
    _end(u, turn, failure.code, _Next(retry_at_ms=retry_at_ms, reason=why))


def _wait_for_model(u: Unit, item: WorkItem, why: str) -> None:
    """Wait once: the deadline counts from the first failure, not from the last."""
    if not any(wait.ref == MODEL for wait in waits.open_of(u.c, item.id)):
        waits.register(u, item.id, waits.Asked(kind=WaitKind.SYSTEM, ref=MODEL, why=why))


def held(u: Unit, turn: Turn, reason: str, until_ms: int | None) -> None:
    """End a turn for which no model call may be made: a budget is used up, or a breaker open.

    The item waits until the time when that ends by itself, or for the person who ends it.
    """
    item = work.read(u.c, turn.work) if turn.work else None
    why = reason[:500]
    if item is not None:
        known = [wait for wait in waits.open_of(u.c, item.id) if wait.ref == MODEL]
        if not any(wait.why == why for wait in known):
            waits.register(u, item.id, _until(why, until_ms, u.now_ms))
        work.rest(u, work.read(u.c, item.id))
    retry_at_ms = until_ms if item is None else None
    _end(u, turn, HELD, _Next(retry_at_ms=retry_at_ms, reason=why))


def _until(why: str, until_ms: int | None, now_ms: int) -> waits.Asked:
    """Wait for the model: to a time, when the worker looks again; else as long as its kind does."""
    if until_ms is None:
        return waits.Asked(kind=WaitKind.SYSTEM, ref=MODEL, why=why)
    seconds = max(-(-(until_ms - now_ms) // 1000), 1)
    return waits.Asked(
        kind=WaitKind.SYSTEM,
        ref=MODEL,
        why=why,
        deadline_s=seconds,
        on_deadline=OnDeadline.LOOK,
    )


def interrupt(u: Unit, turn: Turn) -> None:
    """End a turn because the hub stops: it goes on at the next start, from here."""
    _end(u, turn, "interrupted", _Next(retry_at_ms=u.now_ms))
