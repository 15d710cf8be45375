"""Ending: how far a command's end has come, as times and flags; the shim's only decisions, pure."""

from __future__ import annotations

RUNNING, ASKED, KILLING, DRAINING, OVER = "running", "asked", "killing", "draining", "over"
DRAIN_S = 2.0
KILL_S = 5.0
KILL_EVERY_S = 0.05
LOOK_EVERY_S = 0.05

NOTHING, SIGNAL, KILL = "nothing", "signal", "kill"


class Ending:
    """Runs from RUNNING to OVER; each call of :meth:`look` says what to do now.

    ``cause`` is why it was asked to end: empty, ``cancelled`` or ``timed_out``; the first counts.
    """

    def __init__(self, *, timeout_s: float, grace_s: float, now: float) -> None:
        self.phase, self.cause, self.was_killed = RUNNING, "", False
        self._grace_s, self._timeout_at = grace_s, now + timeout_s
        self._until = self._timeout_at

    def ask(self, cause: str, now: float) -> str:
        """Ask for the end; return SIGNAL the first time, NOTHING when it is ending anyway."""
        if self.phase != RUNNING:
            return NOTHING
        self.phase, self.cause, self._until = ASKED, cause, now + self._grace_s
        return SIGNAL

    def look(self, now: float, *, has_ended: bool, has_kin: bool, is_open: bool) -> str:
        """Move on. *has_ended*: the command itself; *has_kin*: others of it; *is_open*: a pipe."""
        action = NOTHING
        if self.phase == RUNNING:
            action = self._running(now, has_ended=has_ended)
        elif self.phase in {ASKED, KILLING}:
            action = self._asked(now, has_ended=has_ended, has_kin=has_kin)
        if self.phase == DRAINING and (not is_open or now >= self._until):
            self.phase = OVER
        return action

    def wait_s(self, now: float, *, has_ended: bool) -> float:
        """Return how long nothing will change by time alone."""
        left = max(0.0, self._until - now)
        if self.phase == KILLING:
            return min(left, KILL_EVERY_S)
        if self.phase == ASKED and has_ended:
            return min(left, LOOK_EVERY_S)  # stragglers are nobody's children yet: look for them
        return left

    def outcome(self, status: int) -> Outcome:
        """Say how it ended: the command's *status* (a negative one is a signal) and the cause."""
        if self.cause == "timed_out":
            return ("timed_out", None)
        if self.cause:
            return ("killed" if self.was_killed else "cancelled", None)
        return ("exited", status) if status >= 0 else ("signaled", -status)

    def _running(self, now: float, *, has_ended: bool) -> str:
        if has_ended:
            self._drain(now)
            return NOTHING
        return self.ask("timed_out", now) if now >= self._timeout_at else NOTHING

    def _asked(self, now: float, *, has_ended: bool, has_kin: bool) -> str:
        if has_ended and not has_kin:
            self._drain(now)
            return NOTHING
        if now < self._until and self.phase == ASKED:
            return NOTHING
        if self.phase == ASKED:
            self.phase, self._until = KILLING, now + KILL_S
            self.was_killed = not has_ended
        elif now >= self._until:
            self._drain(now)  # what can't be killed is listed as a survivor
            return NOTHING
        return KILL

    def _drain(self, now: float) -> None:
        self.phase, self._until = DRAINING, now + DRAIN_S


Outcome = tuple[str, int | None]
