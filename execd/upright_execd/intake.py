"""Intake: the way of a command from its arrival to its shim, or to an end without a start."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from upright_execd import argvrules, environment, workspace
from upright_execd.argvrules import Call
from upright_execd.command import Command
from upright_execd.confinement import WITHOUT_SECRETS, bounds, programs
from upright_execd.consent import Question
from upright_execd.errors import ExecdError
from upright_execd.house import House, OwnerRules
from upright_execd.launch import Launch, launch
from upright_execd.rules import Decision, Place, Rule, Verdict, decide
from upright_execd.settings import Mode
from upright_execd.shims import Shims
from upright_execd.spool.accepted import Accepted
from upright_execd.spool.outcome import unstarted
from upright_execd.workspace import Held
from upright_wire.command import Allow, Ask, Ending, Outcome
from upright_wire.frames import Exec

log: Final = logging.getLogger("upright.execd")
STDIN_MISMATCH: Final = "stdin_mismatch"


@dataclass(slots=True, kw_only=True)
class Entry:
    """A command on its way: the folder it is to run in, held open, and what became of it so far.

    ``next`` is its end without a start, or that it began, or the rule that wants to know, or None:
    its input is waited for. ``program`` is the real path of its program, empty when there is none.
    """

    held: Held
    next: Outcome | Accepted | Rule | None = None
    program: str = ""
    is_allowed: bool = False

    def taken(self) -> int:
        """Return a handle of the folder, for the shim to have."""
        return os.dup(self.held.handle)

    def close(self) -> None:
        """Let the folder go."""
        os.close(self.held.handle)


class Intake:
    """Takes commands one by one; *on_change* is called with each that moved.

    The folder that is judged is held open until the shim has it, so nothing that happens to its
    name on the way changes where the command runs.
    """

    def __init__(self, house: House, shims: Shims, on_change: Callable[[Command], None]) -> None:
        self._house, self._shims, self._on_change = house, shims, on_change

    async def take(self, command: Command, order: Exec) -> Outcome | None:
        """Bring the command to its shim (None), or return why it never starts.

        Cancelling doesn't leave half a start: what the hub gives up is withdrawn instead.
        """
        rules = self._house.rules()
        if rules.settings.mode is Mode.OFF:  # before anything is looked at: not even what exists
            return unstarted(Ending.DENIED, text=Rule.MODE_OFF)
        try:
            entry = await asyncio.to_thread(self._enter, order, rules)
        except OSError as error:
            return _failed(error)
        try:
            return await self._go_on(command, order, entry)
        except OSError as error:
            return _failed(error)
        finally:
            entry.close()

    async def _go_on(self, command: Command, order: Exec, entry: Entry) -> Outcome | None:
        begun = entry.next
        if begun is None or isinstance(begun, Rule):
            ended = await self._wait(command, order, entry)
            if ended is not None:
                return ended
            begun = await asyncio.to_thread(self._launch, order, entry)
        if isinstance(begun, Outcome):
            return begun
        await self._begun(command, begun)
        return None

    # -------------------------------------------------------------- in a thread, in one go
    def _enter(self, order: Exec, rules: OwnerRules) -> Entry:
        """Judge the command; start it, if nothing has to be waited for.

        Raises:
            OSError: its folder isn't there, or nothing can be started; nothing is left open.
        """
        spec = order.spec
        entry = Entry(held=workspace.hold(spec.cwd, rules.workspaces))
        try:
            entry.next = self._judge(order, entry)
        except BaseException:
            entry.close()
            raise
        return entry

    def _judge(self, order: Exec, entry: Entry) -> Outcome | Accepted | Rule | None:
        self._find(order, entry)
        decision = self._decide(order, entry)
        self._note("command.judged", order, entry, rule=decision.rule)
        match decision.verdict:
            case Verdict.DENY:
                return unstarted(Ending.DENIED, text=decision.rule)
            case Verdict.ASK:
                return decision.rule
            case Verdict.RUN:
                return None if order.spec.stdin is not None else self._launch(order, entry)

    # -------------------------------------------------------------- what may take long
    async def _wait(self, command: Command, order: Exec, entry: Entry) -> Outcome | None:
        outcome = None
        try:
            async with asyncio.timeout(order.ttl_ms / 1000) as command.waiting:
                if isinstance(entry.next, Rule):
                    outcome = await self._consent(command, order, entry, entry.next)
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

    async def _consent(
        self, command: Command, order: Exec, entry: Entry, reason: Rule
    ) -> Outcome | None:
        rule = await self._ask(command, order, entry, reason)
        await asyncio.to_thread(self._note, "command.asked", order, entry, rule=rule)
        if rule is not Rule.OWNER_ALLOWED:
            return unstarted(Ending.DENIED, text=rule)
        decision = self._decide(order, entry)  # the owner may have tightened meanwhile
        if decision.verdict is Verdict.DENY:
            return unstarted(Ending.DENIED, text=decision.rule)
        return None

    async def _ask(self, command: Command, order: Exec, entry: Entry, reason: Rule) -> Rule:
        spec = order.spec
        question = Question(
            command_id=order.command_id,
            digest=order.digest,
            argv=spec.argv,
            cwd=str(entry.held.path),
            reason=reason,
            env=spec.env,
            stdin_bytes=0 if spec.stdin is None else spec.stdin.bytes,
            confinement=spec.confinement,
            program=entry.program,
            secrets=spec.secrets or (),
        )

        def on_asked() -> None:
            command.apply(Ask())
            self._on_change(command)

        timeout_s = self._house.rules().settings.consent_timeout_s
        return await self._house.consent.ask(question, timeout_s, on_asked)

    # -------------------------------------------------------------- the start
    async def _begun(self, command: Command, accepted: Accepted) -> None:
        command.accepted = accepted
        command.apply(Allow())
        self._on_change(command)
        if command.is_withdrawn:
            await asyncio.to_thread(self._house.spool.folder(command.command_id).cancel)

    def _launch(self, order: Exec, entry: Entry) -> Accepted | Outcome:
        house, settings, spec = self._house, self._house.rules().settings, order.spec
        quota_bytes = min(spec.quota_bytes, settings.command_quota_bytes)
        if not house.spool.has_room(
            quota_bytes,
            quota_bytes=settings.spool_quota_bytes,
            min_free_percent=settings.min_free_percent,
        ):
            return unstarted(Ending.DENIED, text=Rule.SPOOL_FULL)
        try:
            secrets = [(name, house.vault.read(kept)) for name, kept in spec.secrets or ()]
        except ExecdError as error:
            log.warning("secret.unread", extra={"command": order.command_id, "why": str(error)})
            return unstarted(Ending.DENIED, text=Rule.SECRETS_UNKNOWN)
        given = environment.compose(
            house.login_environment,
            spec.env,
            owner=settings.environment,
            command_id=order.command_id,
            secrets=secrets,
            is_bare=spec.confinement in WITHOUT_SECRETS,
        )
        accepted = Accepted(
            command_id=order.command_id,
            digest=order.digest,
            session=order.session,
            lease_epoch=order.lease_epoch,
            spec=spec,
            os_boot_id=house.os_boot_id,
            env_dropped=given.dropped,
        )
        folder = house.spool.folder(order.command_id)
        is_bare = spec.confinement in WITHOUT_SECRETS
        readable = (*settings.readable, *programs(given.variables)) if is_bare else ()
        this = Launch(
            accepted=accepted,
            cwd=entry.taken(),
            program=entry.program if entry.is_allowed else "",
            variables=given.variables,
            bounds=bounds(
                spec.confinement,
                entry.held,
                folder.path,
                readable=readable,
                hidden=house.hidden,
            ),
            bell=house.paths.bell,
            quota_bytes=quota_bytes,
        )
        launch(house.spool, self._shims, this)
        return accepted

    # -------------------------------------------------------------- judging
    def _find(self, order: Exec, entry: Entry) -> None:
        """Find the program, as the shim will, and whether a rule of the owner allows it."""
        path = self._house.login_environment.get("PATH", "")
        entry.program = argvrules.program(order.spec.argv[0], path, entry.held.handle)
        entry.is_allowed = argvrules.allows(
            self._house.rules().argv_rules, self._call(order, entry)
        )

    def _call(self, order: Exec, entry: Entry) -> Call:
        spec = order.spec
        return Call(
            program=entry.program,
            argv=spec.argv,
            cwd=str(entry.held.path),
            confinement=spec.confinement,
            has_env=bool(spec.env or spec.secrets),
            has_stdin=spec.stdin is not None,
        )

    def _decide(self, order: Exec, entry: Entry) -> Decision:
        place = Place.ELSEWHERE if entry.held.workspace is None else Place.WORKSPACE
        mode = self._house.rules().settings.mode
        return decide(
            mode,
            place,
            order.spec.confinement,
            self._house.enforceable,
            is_allowed=entry.is_allowed,
            has_secrets=bool(order.spec.secrets),
        )

    def _note(self, event: str, order: Exec, entry: Entry, *, rule: Rule) -> None:
        self._house.audit.write(
            event,
            command=order.command_id,
            digest=order.digest,
            session=order.session,
            argv=order.spec.argv,
            cwd=str(entry.held.path),
            confinement=order.spec.confinement,
            secrets=[name for _, name in order.spec.secrets or ()],
            rule=rule,
        )


def _failed(error: OSError) -> Outcome:
    number = error.errno or errno.EIO
    return unstarted(Ending.SPAWN_FAILED, number=number, text=error.strerror or None)
