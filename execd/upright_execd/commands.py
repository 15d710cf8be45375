"""Commands: the local half as the link sees it (the port ``Commands``)."""

from __future__ import annotations

import asyncio
import logging
from asyncio import TaskGroup
from typing import Final

from upright_execd import announce, record
from upright_execd.command import FENCE, Command, Input
from upright_execd.house import House
from upright_execd.intake import Intake
from upright_execd.ports import Listener, Piece, Snapshot
from upright_execd.retiring import Retiring
from upright_execd.shims import Shims
from upright_execd.spool import reading, telling
from upright_execd.spool.accepted import Receipt
from upright_execd.spool.outcome import unstarted
from upright_execd.spool.store import Found
from upright_execd.trial import is_trial
from upright_execd.watch import Watch
from upright_wire.command import (
    End,
    Ending,
    Offer,
    Outcome,
    Refusal,
    Refuse,
    Replay,
    Start,
    Started,
    State,
    Stream,
    admit,
)
from upright_wire.frames import Exec, Held, Workspace
from upright_wire.spec import digest

log: Final = logging.getLogger("upright.execd")


class LocalCommands:
    """All open commands, each at most once. Tasks start in *group*; see ``ports.Commands``."""

    def __init__(self, house: House, group: TaskGroup) -> None:
        self._house, self._spool, self._group = house, house.spool, group
        self._commands: dict[str, Command] = {}
        self._epochs: dict[str, int] = {}
        self._listener: Listener | None = None
        self._admission = asyncio.Lock()
        self._shims, self._retiring = Shims(), Retiring(house.spool)
        self._intake = Intake(house, self._shims, self._changed)
        self._watch = Watch(house, self._commands, self._shims, on_change=self._changed)

    async def load(self) -> None:
        """Take up what an earlier daemon left; nothing else may be called before."""
        found, self._epochs = await asyncio.to_thread(self._load)
        for one in found:
            if one.receipt is not None:
                command = Command.from_receipt(one.receipt)
            elif one.accepted is not None:
                command = Command.from_accepted(one.accepted)
            else:
                continue
            command.accepted = one.accepted
            self._commands[command.command_id] = command

    async def run(self) -> None:
        """Follow all commands until cancelled; they go on without it."""
        self._group.create_task(self._retiring.run(), name="retire")
        try:
            await asyncio.to_thread(self._shims.open)
            await self._watch.run(self._house.paths.bell)
        finally:
            self._shims.close()

    def open_commands(self) -> tuple[Snapshot, ...]:
        """Return what is open, for the owner to see."""
        return tuple(command.snapshot() for command in self._commands.values())

    # -------------------------------------------------------------- the port
    def attach(self, listener: Listener) -> None:
        """Tell this listener from now on, and nobody before it."""
        self._listener = listener

    async def exec(self, order: Exec) -> Refusal | None:
        """Take up a command, or say why not (see the port)."""
        async with self._admission:
            known = await self._known(order)
            offer = Offer(
                digest=order.digest,
                actual_digest=digest(order.spec),
                lease_epoch=order.lease_epoch,
            )
            newest = self._epochs.get(order.session, 0)
            match admit(offer, known_digest=known, newest_epoch=newest):
                case Refuse(refusal=refusal):
                    await self._note("command.refused", order, why=refusal)
                    return refusal
                case Replay():
                    self._tell(order.command_id)
                case Start():
                    await self._raise_epoch(order)
                    if self._spool.is_too_old(order.command_id):
                        await self._expire(order)
                    else:
                        self._begin(order)
        return None

    async def stdin(self, command_id: str, offset: int, data: bytes, *, end: bool) -> int:
        """Spool input; return the offset up to which all is safe (see the port)."""
        command = self._commands.get(command_id)
        wanted = None if command is None else command.input
        if command is None or wanted is None:
            return offset + len(data)
        async with wanted.order:
            if command.state not in {State.RECEIVED, State.AWAITING_CONSENT}:
                return offset + len(data)
            fresh = wanted.fresh(offset, data)
            folder = self._spool.folder(command_id)
            await asyncio.to_thread(folder.write_stdin, wanted.offset, fresh)
            wanted.keep(fresh, is_end=end and offset <= wanted.offset)
            return wanted.offset

    async def cancel(self, command_id: str) -> None:
        """End it, or leave a fence (see the port)."""
        async with self._admission:
            command = self._commands.get(command_id)
            if command is None:
                if await self._retiring.find(command_id) is None:
                    await self._fence(command_id)
            elif command.is_with_shim:
                await asyncio.to_thread(self._spool.folder(command_id).cancel)
            elif command.state is not State.FINAL:
                command.withdraw()

    async def inventory(self) -> tuple[Held, ...]:
        """Return every command whose final is not acknowledged, fences too."""
        hubs = tuple(one for one in self._commands.values() if not is_trial(one.command_id))
        return await asyncio.to_thread(self._inventory, hubs)

    async def look(self, command_id: str) -> Snapshot | None:
        """Return the present state; None when nothing is held under this id."""
        command = self._commands.get(command_id)
        if command is not None:
            return command.snapshot()
        receipt = await self._retiring.find(command_id)
        return None if receipt is None else Command.from_receipt(receipt).snapshot()

    async def read(self, command_id: str, stream: Stream, offset: int, max_bytes: int) -> Piece:
        """Return what the stream holds from *offset* on (see the port).

        A command whose spool went with its acknowledgement has all its bytes omitted.
        """
        command = self._commands.get(command_id)
        if command is None:
            done = await self._retiring.find(command_id)
            return telling.gone(None if done is None else done.outcome, stream, offset)
        outcome = command.outcome
        if outcome is not None and offset >= telling.totals(outcome, stream).bytes:
            return Piece(end=True)
        return await asyncio.to_thread(
            reading.read,
            self._spool.folder(command_id).path,
            stream,
            offset,
            max_bytes=max_bytes,
            totals=None if outcome is None else telling.totals(outcome, stream),
        )

    async def output_ack(self, command_id: str, stream: Stream, offset: int) -> None:
        """Learn what the hub has; the spool stays whole until the end is acknowledged."""
        log.debug(
            "output.acknowledged",
            extra={"command": command_id, "stream": stream.value, "offset": offset},
        )

    async def final_ack(self, command_id: str) -> None:
        """Learn that the hub has stored the outcome: the spool goes, the receipt stays."""
        command = self._commands.get(command_id)
        if command is None or command.outcome is None:
            return
        self._retiring.add(_receipt(command, command.outcome))
        self._commands.pop(command_id, None)

    async def workspaces(self) -> tuple[Workspace, ...]:
        """Return the workspaces to announce."""
        rows, environment = self._house.rules().workspaces, self._house.login_environment
        return await asyncio.to_thread(announce.announced, rows, environment)

    def workspaces_changed(self) -> None:
        """Pass it on that the list is another one."""
        if self._listener is not None:
            self._listener.workspaces_changed()

    # -------------------------------------------------------------- steps
    def _begin(self, order: Exec) -> None:
        command = Command(order.command_id, order.digest)
        if order.spec.stdin is not None:
            command.input = Input(order.spec.stdin)
        self._commands[order.command_id] = command
        self._group.create_task(self._take(command, order), name=f"take {order.command_id}")

    async def _take(self, command: Command, order: Exec) -> None:
        outcome = await self._intake.take(command, order)
        if outcome is None:
            self._watch.wake(command.command_id)
        else:
            await self._end(command, outcome)

    async def _end(self, command: Command, outcome: Outcome) -> None:
        """End a command that no shim has."""
        receipt = _receipt(command, outcome)
        await asyncio.to_thread(record.write_receipt, self._house, receipt)
        command.apply(End(outcome=outcome))
        self._changed(command)

    async def _fence(self, command_id: str) -> None:
        command = Command(command_id, FENCE)
        self._commands[command_id] = command
        await self._end(command, unstarted(Ending.CANCELLED))

    async def _expire(self, order: Exec) -> None:
        """Start nothing under an id whose receipt may have been dropped (E4.3)."""
        command = Command(order.command_id, order.digest)
        self._commands[order.command_id] = command
        await self._end(command, Outcome(ending=Ending.EXPIRED, started=Started.UNKNOWN))

    async def _known(self, order: Exec) -> str | None:
        """Return the digest known under the order's id; a fence takes on the order's."""
        command = self._commands.get(order.command_id)
        if command is None:
            receipt = await self._retiring.find(order.command_id)
            return None if receipt is None else receipt.digest or order.digest
        if command.digest == FENCE and command.outcome is not None:
            command.digest = order.digest
            receipt = _receipt(command, command.outcome)
            await asyncio.to_thread(self._spool.folder(order.command_id).write_receipt, receipt)
        return command.digest

    async def _raise_epoch(self, order: Exec) -> None:
        if self._epochs.get(order.session) != order.lease_epoch:
            self._epochs.pop(order.session, None)  # the newest session stands last
            self._epochs[order.session] = order.lease_epoch
            await asyncio.to_thread(self._spool.write_epochs, dict(self._epochs))

    async def _note(self, event: str, order: Exec, *, why: str) -> None:
        await asyncio.to_thread(
            self._house.audit.write,
            event,
            command=order.command_id,
            digest=order.digest,
            session=order.session,
            why=why,
        )

    def _changed(self, command: Command) -> None:
        self._tell(command.command_id)

    def _tell(self, command_id: str) -> None:
        if self._listener is not None:
            self._listener.command_changed(command_id)

    # -------------------------------------------------------------- in a thread
    def _load(self) -> tuple[list[Found], dict[str, int]]:
        return list(self._spool.load()), self._spool.epochs()

    def _inventory(self, commands: tuple[Command, ...]) -> tuple[Held, ...]:
        return tuple(self._held(command) for command in commands)

    def _held(self, command: Command) -> Held:
        out, err = telling.ends(self._spool.folder(command.command_id).path, command.outcome)
        return Held(
            command_id=command.command_id,
            digest=command.digest,
            state=command.state,
            stdout=out,
            stderr=err,
            stdin=command.stdin_offset,
        )


def _receipt(command: Command, outcome: Outcome) -> Receipt:
    return Receipt(command_id=command.command_id, digest=command.digest, outcome=outcome)
