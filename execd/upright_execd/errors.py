"""Errors of the daemon: one tree; the sentence is for people, ``code`` for machines."""

from __future__ import annotations

from typing import ClassVar


class ExecdError(Exception):
    """Something went wrong; the message says what, and ``advice`` what to do.

    ``exit_code`` is what a process ends with that stops on it (the codes of `execd` and `upright`).
    """

    code: ClassVar[str] = "execd.error"
    exit_code: ClassVar[int] = 1

    def __init__(self, sentence: str, *, advice: str = "") -> None:
        super().__init__(f"{sentence} {advice}".rstrip())
        self.sentence = sentence
        self.advice = advice


class SettingsError(ExecdError):
    """The settings file can't be used; the message names the file and the key."""

    code = "execd.settings"
    exit_code = 2


class NotFoundError(ExecdError):
    """There is no such thing."""

    code = "execd.not_found"
    exit_code = 3


class NotRunningError(ExecdError):
    """No daemon answers on this machine."""

    code = "execd.not_running"
    exit_code = 5


class AlreadyRunningError(ExecdError):
    """Another daemon holds the state directory."""

    code = "execd.already_running"
    exit_code = 75


class FullError(ExecdError):
    """The spool has no room for another command."""

    code = "execd.full"
    exit_code = 75


class DamagedError(ExecdError):
    """A file of the spool is not what was written; the message names it."""

    code = "execd.damaged"


class RemoteError(ExecdError):
    """The running daemon refuses; the sentence is its own, and so is the exit code."""

    code = "execd.refused"

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.status = exit_code


class RefusedError(ExecdError):
    """The owner's own rules forbid it."""

    code = "execd.forbidden"
    exit_code = 4


class RevokedError(ExecdError):
    """The hub took this machine's key out of use."""

    code = "execd.revoked"
    exit_code = 4
