"""Store: all command folders: those that are open, and the receipts of those that are done."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from upright_execd.disk import Disk
from upright_execd.errors import DamagedError
from upright_execd.paths import make_private, write_private
from upright_execd.spool.accepted import Accepted, Receipt
from upright_execd.spool.folder import RECEIPT, Folder, Marks
from upright_execd.spool.outcome import HOST_REBOOT, RECEIPT_DAMAGED, SHIM_DIED, from_pairs
from upright_execd.spool.reading import FILES
from upright_wire.command import Ending, Outcome, Started, Stream, Totals
from upright_wire.errors import WireError

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
_SORTED: Final = re.compile(r"jb_[0-9a-z]{26}")
_CHUNK_BYTES: Final = 1024 * 1024
_MAX_SESSIONS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An open command, as its folder tells it at start."""

    accepted: Accepted | None
    receipt: Receipt | None


class Spool:
    """The folders below ``open``, the receipts below ``done``. All of it blocks."""

    def __init__(self, root: Path, os_boot_id: str) -> None:
        self._open, self._done, self._epochs = root / "open", root / "done", root / "epochs.json"
        self._pruned = root / "pruned"
        self._os_boot_id = os_boot_id
        self._put: set[str] = set()
        self._newest_pruned = ""
        self._disk = Disk()

    def make(self) -> None:
        """Make the folders, and look what lies in them."""
        for folder in (self._open, self._done):
            make_private(folder)
        self._put = {path.name for path in self._done.iterdir()}
        with suppress(FileNotFoundError):
            self._newest_pruned = self._pruned.read_text(encoding="ascii").strip()

    def is_done(self, command_id: str) -> bool:
        """Say, without a look at the disk, whether a command's receipt was put away."""
        return folder_name(command_id) in self._put

    def folder(self, command_id: str) -> Folder:
        """Return the folder of an open command; ids that are no file names get a safe one."""
        return Folder(self._open / folder_name(command_id))

    def load(self) -> Iterator[Found]:
        """Yield every open command; what was never accepted, or never begun, is swept away.

        A command that no shim ever took is as if it had not come: the hub sees that it isn't held
        and sends it again, which is one start (E7). A folder that can't be read is left alone: it
        may belong to a later version.
        """
        for path in sorted(self._open.iterdir()):
            folder = Folder(path)
            with suppress(DamagedError):
                found = Found(accepted=folder.accepted(), receipt=folder.receipt())
                if found.receipt and found.receipt.is_acknowledged:
                    self._put_away(folder)
                elif found.receipt or (
                    found.accepted and self._may_have_begun(folder, found.accepted)
                ):
                    yield found
                else:
                    shutil.rmtree(folder.path)

    # -------------------------------------------------------------- a command begins
    @contextmanager
    def accepting(self, accepted: Accepted) -> Iterator[tuple[Folder, int]]:
        """Accept a command: when this is entered, it survives a power cut.

        Yields its folder and the handle of its lock, held.
        """
        folder = self.folder(accepted.command_id)
        folder.make()
        with folder.locked() as lock:
            folder.accept(accepted, self._disk)
            yield folder, lock

    def _may_have_begun(self, folder: Folder, accepted: Accepted) -> bool:
        """Say whether the program may run or have run; after a power cut no mark says "no" (E5.3).

        It asks for the shim first: one that ends in between has left its marks.
        """
        if folder.has_shim() or accepted.os_boot_id != self._os_boot_id:
            return True
        marks = folder.marks()
        return marks.is_begun or marks.exit is not None

    def done(self, command_id: str) -> Receipt | None:
        """Return the receipt of a command whose end the hub has.

        A damaged one still says that the id was used: its digest matches nothing.
        """
        try:
            return Folder(self._done / folder_name(command_id)).receipt()
        except DamagedError:
            outcome = Outcome(ending=Ending.LOST, started=Started.UNKNOWN, text=RECEIPT_DAMAGED)
            return Receipt(command_id=command_id, digest=RECEIPT_DAMAGED, outcome=outcome)

    def retire(self, receipts: Sequence[Receipt]) -> None:
        """Drop the spools, keep the receipts; the disk is waited for once.

        Nothing hangs on these receipts but what a hub would hear that has forgotten these commands:
        until they are synced, a power cut may make them ``lost(host_reboot)``, never unknown.
        """
        folders = [self.folder(receipt.command_id) for receipt in receipts]
        for folder, receipt in zip(folders, receipts, strict=True):
            folder.write_receipt(replace(receipt, is_acknowledged=True), waits=False)
        self._disk.sync([folder.path / RECEIPT for folder in folders])
        for folder in folders:
            self._put_away(folder)

    def _put_away(self, folder: Folder) -> None:
        folder.strip()
        target = self._done / folder.path.name
        with suppress(FileNotFoundError):
            shutil.rmtree(target)
        folder.path.replace(target)
        self._put.add(target.name)

    def prune(self, before: datetime) -> int:
        """Drop receipts that are older than *before*; return how many."""
        old: list[Path] = []
        for path in self._done.iterdir():
            with suppress(FileNotFoundError):
                if (path / RECEIPT).stat().st_mtime < before.timestamp():
                    old.append(path)
        newest = max((path.name for path in old if _SORTED.fullmatch(path.name)), default="")
        if newest > self._newest_pruned:  # known before the first of them goes
            write_private(self._pruned, newest.encode("ascii") + b"\n")
            self._newest_pruned = newest
        for path in old:
            shutil.rmtree(path)
            self._put.discard(path.name)
        return len(old)

    def is_too_old(self, command_id: str) -> bool:
        """Say whether a command that is not known may have had a receipt that was dropped since.

        Ids sort by their time, so no clock is asked: what is older than the newest dropped receipt
        is too old. An id of another form is never.
        """
        is_sorted = _SORTED.fullmatch(command_id) is not None
        return is_sorted and command_id <= self._newest_pruned

    # -------------------------------------------------------------- room
    def has_room(self, wanted_bytes: int, *, quota_bytes: int, min_free_percent: int) -> bool:
        """Say whether one more command may be spooled, by the quota and by the disk's free part."""
        used = sum(Folder(path).size_bytes() for path in self._open.iterdir())
        disk = shutil.disk_usage(self._open)
        is_free = disk.free * 100 >= disk.total * min_free_percent
        return is_free and used + wanted_bytes <= quota_bytes

    # -------------------------------------------------------------- fencing
    def epochs(self) -> dict[str, int]:
        """Return the newest lease epoch seen for each session."""
        with suppress(FileNotFoundError, ValueError):
            table: dict[str, int] = json.loads(self._epochs.read_bytes())
            return table
        return {}

    def write_epochs(self, epochs: dict[str, int]) -> None:
        """Keep the epochs of the sessions that were heard of last."""
        kept = dict(list(epochs.items())[-_MAX_SESSIONS:])
        temporary = self._epochs.with_suffix(".tmp")
        temporary.write_text(json.dumps(kept), encoding="utf-8")
        temporary.replace(self._epochs)

    # -------------------------------------------------------------- the end of a command
    def outcome(self, accepted: Accepted, marks: Marks) -> Outcome | None:
        """Return the end that the shim put on record, if it did and it can be trusted."""
        if marks.exit is None:
            return None
        try:
            outcome = from_pairs(marks.exit, accepted.env_dropped)
        except (KeyError, ValueError, WireError):
            return None
        is_this_boot = accepted.os_boot_id == self._os_boot_id
        return outcome if is_this_boot or self._is_whole(accepted, outcome) else None

    def lost(self, accepted: Accepted, marks: Marks) -> Outcome:
        """Return the outcome of a command that has neither a shim nor a final record.

        What was written stays readable. Without a power cut the marks are the whole truth; after
        one, a mark that is missing may have been there (E5.3).
        """
        is_this_boot = accepted.os_boot_id == self._os_boot_id
        started = Started.UNKNOWN
        if marks.runs:
            started = Started.YES
        elif is_this_boot and not marks.is_begun:
            started = Started.NO
        return Outcome(
            ending=Ending.LOST,
            started=started,
            text=SHIM_DIED if is_this_boot else HOST_REBOOT,
            stdout=self._totals(accepted, Stream.STDOUT),
            stderr=self._totals(accepted, Stream.STDERR),
            env_dropped=accepted.env_dropped,
        )

    def _is_whole(self, accepted: Accepted, outcome: Outcome) -> bool:
        """Say whether a power cut took nothing of the output that the record speaks of."""
        claims = {Stream.STDOUT: outcome.stdout, Stream.STDERR: outcome.stderr}
        return all(self._totals(accepted, stream) == claim for stream, claim in claims.items())

    def _totals(self, accepted: Accepted, stream: Stream) -> Totals:
        path = self.folder(accepted.command_id).path / FILES[stream]
        sha, size = hashlib.sha256(), 0
        with suppress(FileNotFoundError), path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                sha.update(chunk)
                size += len(chunk)
        return Totals(bytes=size, sha256=sha.hexdigest())


def folder_name(command_id: str) -> str:
    """Return a file name for an id: itself, or a hash of what is no plain name."""
    if _NAME.fullmatch(command_id):
        return command_id
    return f"x-{hashlib.sha256(command_id.encode('utf-8', 'surrogatepass')).hexdigest()}"
