"""Watch: hears the shims' bell, looks what became of their commands, and finds the dead ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from upright_execd import record
from upright_execd.command import Command
from upright_execd.house import House
from upright_execd.opening import opened
from upright_execd.paths import PRIVATE_FILE
from upright_execd.shims import Shims
from upright_execd.spool import orphans
from upright_execd.spool.accepted import Accepted, Receipt
from upright_execd.spool.folder import Marks
from upright_execd.spool.store import folder_name
from upright_wire.command import Begin, End, Outcome, Started, State

SWEEP_S: Final = 1.0
_READ_BYTES: Final = 64 * 1024
_MOST_EARLY: Final = 1000


class Watch:
    """Follows the open commands. The bell may stay silent: a sweep looks at all that run.

    *on_change* is called with a command after each look that could have found something new.
    """

    def __init__(
        self,
        house: House,
        commands: Mapping[str, Command],
        shims: Shims,
        *,
        on_change: Callable[[Command], None],
    ) -> None:
        self._house, self._commands, self._shims = house, commands, shims
        self._on_change = on_change
        self._rung: set[str] = set()
        self._early: dict[str, None] = {}  # rang before they were known here
        self._has_cold = False
        self._wakes = asyncio.Event()

    async def run(self, bell: Path) -> None:
        """Look after the commands until cancelled."""
        handle = await opened(lambda: _open_bell(bell), os.close)
        loop = asyncio.get_running_loop()
        loop.add_reader(handle, self._hear, handle)
        try:
            await self._look(self._running(), is_sweep=True)
            while True:
                is_sweep = not await self._rings()
                rung = self._known()
                await self._look(self._running() if is_sweep else rung, is_sweep=is_sweep)
                self._has_cold = self._shims.reap()
        finally:
            loop.remove_reader(handle)
            os.close(handle)

    def wake(self, command_id: str) -> None:
        """Say that a command was given to a shim, which may have rung before it was known here."""
        name = folder_name(command_id)
        if name in self._early:
            self._rung.add(name)
        self._wakes.set()

    def _known(self) -> list[Command]:
        """Take what has rung; what is not known yet is kept for when it is."""
        names, self._rung = self._rung, set()
        rung = [c for c in self._running() if folder_name(c.command_id) in names]
        known = {folder_name(c.command_id) for c in rung}
        self._early = dict.fromkeys((*self._early, *(names - known)))
        for name in (*known, *list(self._early)[:-_MOST_EARLY]):
            self._early.pop(name, None)
        return rung

    async def _rings(self) -> bool:
        """Wait for the bell; False when it stayed silent for as long as that may be trusted."""
        is_busy = bool(self._running() or self._has_cold)
        try:
            async with asyncio.timeout(SWEEP_S if is_busy else None):
                await self._wakes.wait()
        except TimeoutError:
            return False
        self._wakes.clear()
        return True

    def _hear(self, handle: int) -> None:
        words = os.read(handle, _READ_BYTES).decode("ascii", "replace")
        self._rung.update(words.split())
        self._wakes.set()

    def _running(self) -> list[Command]:
        return [command for command in self._commands.values() if command.is_with_shim]

    async def _look(self, commands: Iterable[Command], *, is_sweep: bool) -> None:
        open_ones = [c for c in commands if c.accepted is not None]
        if not open_ones:
            return
        accepted = [c.accepted for c in open_ones if c.accepted is not None]
        found = await asyncio.to_thread(self._read_all, accepted, is_sweep=is_sweep)
        for command, (marks, outcome) in zip(open_ones, found, strict=True):
            has_run = outcome is not None and outcome.started is Started.YES
            if command.state is State.ACCEPTED and (marks.runs or has_run):
                command.apply(Begin(pid=marks.pid or 0))
            if outcome is not None:
                command.apply(End(outcome=outcome))
            self._on_change(command)

    def _read_all(
        self, accepted: Iterable[Accepted], *, is_sweep: bool
    ) -> list[tuple[Marks, Outcome | None]]:
        return [self._read(one, is_sweep=is_sweep) for one in accepted]

    def _read(self, accepted: Accepted, *, is_sweep: bool) -> tuple[Marks, Outcome | None]:
        """Read the marks, and the outcome if there is one; a sweep also asks whether a shim lives.

        It asks first and reads then: a shim that ends in between has left its record.
        """
        spool = self._house.spool
        folder = spool.folder(accepted.command_id)
        is_dead = is_sweep and not folder.has_shim()
        marks = folder.marks()
        outcome = spool.outcome(accepted, marks)
        if outcome is None and is_dead:
            orphans.kill(folder.path)
            outcome = spool.lost(accepted, marks)
            receipt = Receipt(
                command_id=accepted.command_id, digest=accepted.digest, outcome=outcome
            )
            record.write_receipt(self._house, receipt)
        elif outcome is not None:
            record.note_end(self._house, accepted.command_id, outcome)
        return marks, outcome


def _open_bell(path: Path) -> int:
    if not path.exists():
        os.mkfifo(path, PRIVATE_FILE)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)
