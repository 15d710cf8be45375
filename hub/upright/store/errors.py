"""Errors of the store: one tree; the docstring is the message for people, ``code`` for machines."""

from __future__ import annotations

from typing import ClassVar


class StoreError(Exception):
    """The store refuses."""

    code: ClassVar[str] = "store.error"


class StoreUnavailableError(StoreError):
    """The transaction was lost as a whole, or the store is closed; nothing of it is stored.

    Only where the server went away during the very commit, and did not come back to say, it isn't
    known; the message says so then.
    """

    code = "store.unavailable"

    def __init__(self, *said: str) -> None:
        super().__init__(": ".join(said))


class DiskFullError(StoreUnavailableError):
    """There is too little room on the disk to take anything new in; nothing is stored."""

    code = "store.disk_full"

    def __init__(self, folder: str, free_bytes: int) -> None:
        said = f"only {free_bytes // 1024**2} MiB are free at {folder}; nothing new is taken in"
        super().__init__(said)
        self.free_bytes = free_bytes


class StoreInUseError(StoreError):
    """Another process has this database open, and only one may."""

    code = "store.in_use"

    def __init__(self, path: str, pid: int | None, *, host: str = "") -> None:
        who = "another process" if pid is None else f"process {pid}"
        who += f" on {host}" if host else ""
        super().__init__(f"{path} is in use by {who}; stop that hub first, or talk to it")
        self.path = path
        self.pid = pid


class RevisionError(StoreError):
    """The file's schema is not the one that this program knows.

    ``found`` is None for a file without a schema, or no file at all. ``command`` sets it right;
    it is empty when only a newer program can.
    """

    code = "store.revision"

    def __init__(self, *, found: str | None, wanted: str, command: str) -> None:
        is_at = "has no schema" if found is None else f"is at revision {found}"
        advice = f"run: {command}" if command else "install the Upright that made it"
        super().__init__(f"the database {is_at}, this program needs {wanted}; {advice}")
        self.found = found
        self.wanted = wanted
        self.command = command


class BackupError(StoreError):
    """This file can't be restored; nothing was changed."""

    code = "store.backup"

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{file}: {why}; nothing was changed")
        self.file = file


class UnknownIdError(StoreError):
    """Nothing has an id that begins like this."""

    code = "store.unknown_id"

    def __init__(self, prefix: str) -> None:
        super().__init__(f"nothing has an id that begins with {prefix!r}")
        self.prefix = prefix


class AmbiguousIdError(StoreError):
    """Several ids begin like this; ``candidates`` are some of them, in order."""

    code = "store.ambiguous_id"

    def __init__(self, prefix: str, candidates: tuple[str, ...]) -> None:
        super().__init__(f"{prefix!r} begins several ids: {', '.join(candidates)}")
        self.prefix = prefix
        self.candidates = candidates


class LeaseLostError(StoreError):
    """Somebody else leads this session now: what an older lease wanted to write is dropped."""

    code = "store.lease_lost"

    def __init__(self, session: str, epoch: int) -> None:
        super().__init__(f"session {session} is not led under epoch {epoch} any more")
        self.session = session
        self.epoch = epoch


class OutputGapError(StoreError):
    """Output came behind bytes that are missing: the peer broke the protocol."""

    code = "store.output_gap"

    def __init__(self, *, job: str, stream: str, have: int, offset: int) -> None:
        super().__init__(f"{stream} of {job} ends at {have}, and {offset} came next")
        self.job = job
        self.have = have
        self.offset = offset


class NotNowError(StoreError):
    """This can't be done with what it names."""

    code = "store.not_now"

    def __init__(self, identifier: str, why: str) -> None:
        super().__init__(f"{identifier}: {why}")
        self.identifier = identifier


class NotSeenError(NotNowError):
    """An approval names the effect that was looked at, by its digest; nothing was decided."""

    code = "approval.not_seen"

    def __init__(self, request: str, given: str) -> None:
        why = f"the effect is not {given[:16]!r}" if given else "name the effect you looked at"
        how = f"look at it and give its digest: upright requests show {request}"
        super().__init__(request, f"{why}; {how}")
