"""Trial: a command of the owner's own, by the same rules, shim and log as the hub's.

The hub is told nothing of it, whatever it is linked to.
"""

from __future__ import annotations

import secrets
from asyncio import TaskGroup
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Final, Protocol

from upright_execd.errors import NotFoundError, SettingsError
from upright_execd.ports import Snapshot
from upright_wire.command import State
from upright_wire.errors import SpecError
from upright_wire.frames import Exec
from upright_wire.plain import to_plain
from upright_wire.spec import Confinement, Spec, digest

PREFIX: Final = "try_"
SESSION: Final = "owner"
TTL_MS: Final = 10 * 60 * 1000


class Tried(Protocol):
    """The commands of this machine, as far as a trial needs them."""

    async def exec(self, order: Exec) -> object:
        """Take up a command."""
        ...

    async def cancel(self, command_id: str) -> None:
        """End one."""
        ...

    async def final_ack(self, command_id: str) -> None:
        """Forget one that has ended."""
        ...

    def open_commands(self) -> Iterable[Snapshot]:
        """Return what is open."""
        ...


def is_trial(command_id: str) -> bool:
    """Say whether a command is the owner's own."""
    return command_id.startswith(PREFIX)


class Trials:
    """Starts, follows and forgets trials; what it must wait for becomes a task of *group*."""

    def __init__(self, commands: Tried, group: TaskGroup) -> None:
        self._commands, self._group = commands, group

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer the owner's ``try``, ``tried``, ``give_up`` and ``forget``.

        Raises:
            SettingsError: that is no command.
            NotFoundError: there is no such trial.
        """
        if question["op"] == "try":
            return self._start(question)
        found = self._find(str(question["command_id"]))
        if question["op"] == "forget":
            self._do(self._commands.final_ack(found.command_id))
        elif question["op"] == "give_up":
            self._do(self._commands.cancel(found.command_id))
        return {"snapshot": to_plain(found)}

    def _start(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        for one in self._commands.open_commands():  # nobody came back for them
            if is_trial(one.command_id) and one.state is State.FINAL:
                self._do(self._commands.final_ack(one.command_id))
        order = _order(question)
        self._do(self._commands.exec(order))
        return {"command_id": order.command_id}

    def _find(self, command_id: str) -> Snapshot:
        for one in self._commands.open_commands():
            if is_trial(command_id) and one.command_id == command_id:
                return one
        sentence = f"There is no trial {command_id}."
        raise NotFoundError(sentence)

    def _do(self, what: Awaitable[object]) -> None:
        self._group.create_task(_done(what), name="trial")


async def _done(what: Awaitable[object]) -> None:
    await what


def _order(question: Mapping[str, Any]) -> Exec:
    try:
        spec = Spec(
            argv=tuple(map(str, question["argv"])),
            cwd=str(question["cwd"]),
            confinement=Confinement(question["confinement"]),
        )
    except SpecError as error:
        sentence = f"This is no command: {error}."
        raise SettingsError(sentence) from error
    return Exec(
        command_id=PREFIX + secrets.token_hex(8),
        channel=1,
        session=SESSION,
        lease_epoch=1,
        digest=digest(spec),
        spec=spec,
        ttl_ms=TTL_MS,
    )
