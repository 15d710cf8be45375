"""Intake: the way of a command from its arrival to its shim, or to an end without a start."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from typing import Final

from upright_execd import confinement, environment, workspace
from upright_execd.command import Command
from upright_execd.consent import Question
from upright_execd.house import House
from upright_execd.launch import Launch, launch
from upright_execd.rules import Decision, Place, Rule, Verdict, decide
from upright_execd.settings import Mode
from upright_execd.spool.accepted import Accepted
from upright_execd.spool.outcome import unstarted
from upright_execd.workspace import Held
from upright_wire.command import Allow, Ask, Ending, Outcome
from upright_wire.frames import Exec

STDIN_MISMATCH: Final = "stdin_mismatch"


class Intake:
    """Takes commands one by one; *on_change* is called with each that moved.

    The folder that is judged is held open until the shim has it, so nothing that happens to its
    name on the way changes where the command runs.
    """

    def __init__(self, house: House, on_change: Callable[[Command], None]) -> None:
        self._house, self._on_change = house, on_change
        self.shims: set[int] = set()

    async def take(self, command: Command, order: Exec) -> Outcome | None:
        """Bring the command to its shim (None), or return why it never starts.

        Cancelling doesn't leave half a start: what the hub gives up is withdrawn instead.
        """
        rules = self._house.rules()
        if rules.settings.mode is Mode.OFF:  # before anything is looked at: not even what exists
            return unstarted(Ending.DENIED, text=Rule.MODE_OFF)
        try:
            held = await asyncio.to_thread(workspace.hold, order.spec.cwd, rules.workspaces)
        except OSError as error:
            return _failed(error)
        try:
            return await self._wait(command, order, held) or await self._start(command, order, held)
        except OSError as error:
            return _failed(error)
        finally:
            os.close(held.handle)

    # -------------------------------------------------------------- what may take long
    async def _wait(self, command: Command, order: Exec, held: Held) -> Outcome | None:
        outcome = None
        try:
            async with asyncio.timeout(order.ttl_ms / 1000) as command.waiting:
                outcome = await self._judge(command, order, held)
                if outcome is None and command.input is not None:
                    await command.input.is_complete.wait()
        except TimeoutError:
            outcome = unstarted(Ending.EXPIRED)
        finally:
            command.waiting = None
        if command.is_withdrawn:
            return unstarted(Ending.CANCELLED)
        if outcome is None and command.input is not None and not command.input.is_right:
            return unstarted(Ending.SPAWN_FAILED, number=errno.EBADMSG, text=STDIN_MISMATCH)
        return outcome

    async def _judge(self, command: Command, order: Exec, held: Held) -> Outcome | None:
        decision = self._decide(order, held)
        await self._note("command.judged", order, held=held, rule=decision.rule)
        if decision.verdict is Verdict.ASK:
            rule = await self._ask(command, order, held, decision.rule)
            await self._note("command.asked", order, held=held, rule=rule)
            if rule is not Rule.OWNER_ALLOWED:
                return unstarted(Ending.DENIED, text=rule)
            decision = self._decide(order, held)  # the owner may have tightened meanwhile
        if decision.verdict is Verdict.DENY:
            return unstarted(Ending.DENIED, text=decision.rule)
        return None

    def _decide(self, order: Exec, held: Held) -> Decision:
        place = Place.ELSEWHERE if held.workspace is None else Place.WORKSPACE
        mode = self._house.rules().settings.mode
        return decide(mode, place, order.spec.confinement, self._house.enforceable)

    async def _ask(self, command: Command, order: Exec, held: Held, reason: Rule) -> Rule:
        spec = order.spec
        question = Question(
            command_id=order.command_id,
            digest=order.digest,
            argv=spec.argv,
            cwd=str(held.path),
            reason=reason,
            env=spec.env,
            stdin_bytes=0 if spec.stdin is None else spec.stdin.bytes,
        )

        def on_asked() -> None:
            command.apply(Ask())
            self._on_change(command)

        timeout_s = self._house.rules().settings.consent_timeout_s
        return await self._house.consent.ask(question, timeout_s, on_asked)

    # -------------------------------------------------------------- the start
    async def _start(self, command: Command, order: Exec, held: Held) -> Outcome | None:
        house, settings = self._house, self._house.rules().settings
        has_room = await asyncio.to_thread(
            house.spool.has_room,
            min(order.spec.quota_bytes, settings.command_quota_bytes),
            quota_bytes=settings.spool_quota_bytes,
            min_free_percent=settings.min_free_percent,
        )
        if not has_room:
            return unstarted(Ending.DENIED, text=Rule.SPOOL_FULL)
        given = environment.compose(
            house.login_environment,
            order.spec.env,
            owner=settings.environment,
            command_id=order.command_id,
        )
        accepted = Accepted(
            command_id=order.command_id,
            digest=order.digest,
            session=order.session,
            lease_epoch=order.lease_epoch,
            spec=order.spec,
            os_boot_id=house.os_boot_id,
            env_dropped=given.dropped,
        )
        folder = house.spool.folder(order.command_id)
        this = Launch(
            accepted=accepted,
            cwd=os.dup(held.handle),
            variables=given.variables,
            writable=confinement.writable(order.spec.confinement, held, folder.path),
            bell=house.paths.bell,
            quota_bytes=min(order.spec.quota_bytes, settings.command_quota_bytes),
        )
        self.shims.add(await asyncio.to_thread(launch, folder, this))
        command.accepted = accepted
        command.apply(Allow())
        self._on_change(command)
        if command.is_withdrawn:
            await asyncio.to_thread(folder.cancel)
        return None

    async def _note(self, event: str, order: Exec, *, held: Held, rule: Rule) -> None:
        await asyncio.to_thread(
            self._house.audit.write,
            event,
            command=order.command_id,
            digest=order.digest,
            session=order.session,
            argv=order.spec.argv,
            cwd=str(held.path),
            rule=rule,
        )


def _failed(error: OSError) -> Outcome:
    number = error.errno or errno.EIO
    return unstarted(Ending.SPAWN_FAILED, number=number, text=error.strerror or None)
