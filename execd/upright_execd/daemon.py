"""Daemon: builds the local half, runs it beside the link, and stops without stopping commands."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from upright_execd import pinned
from upright_execd.audit import Audit
from upright_execd.clock import Clock, os_boot_id
from upright_execd.commands import LocalCommands
from upright_execd.confinement import enforceable
from upright_execd.consent import Answer, Consent
from upright_execd.errors import AlreadyRunningError, RevokedError
from upright_execd.house import House, OwnerRules
from upright_execd.ownerfiles import OwnerFiles
from upright_execd.ownerline import OwnerLine
from upright_execd.paths import PRIVATE_FILE, Paths, make_private
from upright_execd.spool.store import Spool
from upright_execd.status import questions, status
from upright_execd.trial import Trials
from upright_execd.vault import Vault
from upright_execd.watchdog import Watchdog

PRUNE_EVERY_S: Final = 24 * 3600.0
log: Final = logging.getLogger("upright.execd")


class Link(Protocol):
    """The network half."""

    @property
    def state(self) -> str:
        """How the link is, in a word or a short sentence."""
        ...

    async def run(self) -> None:
        """Keep the link until cancelled."""
        ...


MakeLink = Callable[[LocalCommands], Link]
"""Builds the network half; it may block."""


class StopError(Exception):
    """The daemon was asked to stop."""


async def serve(
    paths: Paths,
    clock: Clock,
    make_link: MakeLink,
    *,
    environment: Mapping[str, str],
) -> None:
    """Run the daemon until SIGTERM or SIGINT; commands go on in their shims.

    The caller holds the state folder (:func:`alone`). *environment* is what commands start from.

    Raises:
        RevokedError: the hub wants no more of this machine.
    """
    revoked: list[Exception] = []
    daemon = await asyncio.to_thread(Daemon, paths, clock, environment)

    def stop() -> None:
        # If a disk or a program holds a thread for too long, stop all the same: all that counts
        # is in the command folders, so an abrupt end costs nothing.
        signal.alarm(daemon.house.rules().settings.stop_timeout_s)
        daemon.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        await daemon.run(make_link)
    except* StopError:
        log.info("daemon.stopped")
    except* RevokedError as group:
        revoked.extend(group.exceptions)
    if revoked:
        raise revoked[0]


class Daemon:
    """One run of the daemon on one state folder, which it has to itself; making it blocks.

    *environment* is what commands start from. A pairing that is damaged is a DamagedError.
    """

    def __init__(self, paths: Paths, clock: Clock, environment: Mapping[str, str]) -> None:
        self._paths, self._clock = paths, clock
        audit = Audit(paths.audit, clock)
        self._files = OwnerFiles(paths, audit, self._rules_changed)
        self._stop = asyncio.Event()
        self._commands: LocalCommands | None = None
        self._trials: Trials | None = None
        self._link: Link | None = None
        self.house = House(
            paths=paths,
            spool=Spool(paths.commands, os_boot_id()),
            consent=Consent(),
            audit=audit,
            clock=clock,
            os_boot_id=os_boot_id(),
            enforceable=enforceable(),
            hidden=pinned.hidden(paths),
            login_environment=environment,
            vault=Vault(paths.secrets),
            rules=lambda: self._files.rules,
        )

    async def run(self, make_link: MakeLink) -> None:
        """Run all parts; the first that fails ends them all.

        Raises:
            ExceptionGroup: what failed, or StopError.
        """
        await asyncio.to_thread(self.house.spool.make)
        async with asyncio.TaskGroup() as group:
            commands = LocalCommands(self.house, group)
            await commands.load()
            self._commands, self._trials = commands, Trials(commands, group)
            self._link = await asyncio.to_thread(make_link, commands)
            line = OwnerLine(self._paths, self._answer)
            group.create_task(commands.run(), name="commands")
            group.create_task(self._files.run(), name="owner's files")
            group.create_task(line.run(), name="owner's line")
            group.create_task(self._link.run(), name="link")
            group.create_task(self._prune(), name="prune")
            group.create_task(Watchdog().run(self._clock), name="watchdog")
            group.create_task(self._wait_for_stop(), name="stop")

    def stop(self) -> None:
        """Stop soon."""
        self._stop.set()

    async def _wait_for_stop(self) -> None:
        await self._stop.wait()
        raise StopError

    async def _prune(self) -> None:
        while True:
            keep = timedelta(days=self._files.rules.settings.receipt_days)
            count = await asyncio.to_thread(self.house.spool.prune, self._clock.now() - keep)
            log.info("receipts.pruned", extra={"count": count})
            await self._clock.sleep(PRUNE_EVERY_S)

    def _rules_changed(self, before: OwnerRules, after: OwnerRules) -> None:
        log.info(
            "rules.changed",
            extra={"mode": after.settings.mode.value, "problem": after.problem},
        )
        if self._commands is not None and before.workspaces != after.workspaces:
            self._commands.workspaces_changed()

    def _answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        match question["op"]:
            case "status":
                commands = () if self._commands is None else self._commands.open_commands()
                link = "starting" if self._link is None else self._link.state
                return status(self.house, commands, link)
            case "consent":
                return {"questions": questions(self.house.consent)}
            case "answer":
                said = Answer(question["answer"])
                name, digest = str(question["command_id"]), question.get("digest")
                answered = self.house.consent.answer(name, said, digest=digest)
                mode = self.house.rules().settings.mode
                return {"command_id": answered.command_id, "answer": said.value, "mode": mode.value}
            case "try" | "tried" | "give_up" | "forget" if self._trials is not None:
                return self._trials.answer(question)
            case "reload":
                self._files.nudge()
                return {}
            case unknown:
                raise ValueError(unknown)


@contextmanager
def alone(paths: Paths) -> Iterator[None]:
    """Hold the state folder; its lock names the process that has it. Blocks.

    Raises:
        AlreadyRunningError: somebody else has it.
    """
    make_private(paths.state)
    handle = os.open(paths.lock, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
        os.close(handle)
        sentence = f"Another execd (process {holder}) runs on {paths.state}."
        raise AlreadyRunningError(sentence, advice="Stop it first, or use it.") from error
    try:
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode("ascii"))
        yield
    finally:
        os.close(handle)


def holder(lock: Path) -> int | None:
    """Return the process that holds a state folder; None when nobody does. Blocks."""
    try:
        handle = os.open(lock, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(handle, 32).decode("ascii", "replace").strip()
        return int(text) if text.isdecimal() else None
    finally:
        os.close(handle)
    return None
