"""Where: on which device a tool's command runs, and how tightly it is held there (B14.2, E10)."""

from __future__ import annotations

from pathlib import PurePosixPath
from posixpath import normpath
from typing import Final

from upright.agent import card
from upright.agent.tools.base import Done, Here, ToolRefusedError, refused
from upright.api import EffectClass
from upright.core.command_queue import MOST_WAITING
from upright.core.mandate import Decision
from upright.core.wait import WaitKind
from upright.core.work import WorkItem
from upright.store import command_queue, placing, requests, waits
from upright.store.placing import Absent, Binding
from upright_wire.spec import Confinement

PROFILE: Final = {
    Decision.ALLOW: Confinement.NONE,
    Decision.ALLOW_CONFINED: Confinement.WORKSPACE,
    Decision.ALLOW_ISOLATED: Confinement.WORKSPACE_NO_NETWORK,
}
"""The loosest profile that each decision allows."""

_TIGHTEST: Final = (Confinement.WORKSPACE_NO_NETWORK, Confinement.WORKSPACE, Confinement.NONE)


def decision(here: Here, item: WorkItem) -> Decision:
    """Decide on work; code that a stranger pushed is never run unconfined (B14.6).

    Raises:
        ToolRefusedError: the item's mandate doesn't go so far.
    """
    said = here.decide(EffectClass.WORK)
    if said in {Decision.ASK, Decision.DENY}:
        raise refused("this item's mandate doesn't let you run commands; ask a person")
    if item.code is not None and item.code.fork:
        return Decision.ALLOW_ISOLATED
    return said


def place(here: Here, item: WorkItem) -> Binding | Done:
    """Return where the item's commands run, or the answer that it waits for a device (E10.4).

    Raises:
        ToolRefusedError: too many commands wait for that device.
    """
    found = placing.find(here.u.c, item)
    if isinstance(found, Absent):
        return _no_device(here, item, found)
    if command_queue.waiting(here.u.c, found.device) >= MOST_WAITING:
        raise refused("{} commands wait for {} already; stop some", MOST_WAITING, found.name)
    placing.place(here.u, item, found)
    return found


def profile(said: Decision, where: Binding) -> Confinement:
    """Return the profile that a decision asks for.

    Raises:
        ToolRefusedError: the device can't hold a command to it, so it would be denied there.
    """
    wanted = PROFILE[said]
    if wanted is not Confinement.NONE and not _can(where, wanted):
        raise _cannot(where, wanted)
    return wanted


def tightest(said: Decision, where: Binding) -> Confinement:
    """Return the tightest profile that the device enforces and the decision allows.

    Raises:
        ToolRefusedError: as for :func:`profile`.
    """
    loosest = PROFILE[said]
    for one in _TIGHTEST[: _TIGHTEST.index(loosest) + 1]:
        if one is Confinement.NONE or _can(where, one):
            return one
    raise _cannot(where, loosest)


def _can(where: Binding, wanted: Confinement) -> bool:
    return f"confinement.{wanted}" in where.caps


def _cannot(where: Binding, wanted: Confinement) -> ToolRefusedError:
    return refused(
        "what this item has read allows only commands that are confined ({}), and {} can't do that:"
        " denied. Ask a person; on the device, `execd doctor` says why",
        wanted.value.replace("_", " "),
        where.name,
    )


def folder(item: WorkItem, where: Binding, cwd: str) -> str:
    """Return the folder of a command: *cwd*, below the workspace unless it is absolute.

    Raises:
        ToolRefusedError: it lies in another item's worktree (E10.3).
    """
    path = PurePosixPath(normpath(PurePosixPath(where.path, cwd)))
    scratch = PurePosixPath(f"{where.path}.worktrees")
    own = PurePosixPath(card.place(item, where).worktree)
    if path.is_relative_to(scratch) and path != scratch and not path.is_relative_to(own):
        raise refused("{} is another item's worktree; yours is {}", path, own)
    return str(path)


def _no_device(here: Here, item: WorkItem, absent: Absent) -> Done:
    """Wait for a device, and tell a person the one command that brings it (E10.4)."""
    prompt = f"{absent.why}, run: {absent.remedy}"
    requests.ask(here.u, requests.Asking(prompt=prompt, work=item.id, session=here.lease.session))
    asked = waits.Asked(kind=WaitKind.SYSTEM, ref=placing.NO_DEVICE, why=prompt)
    waits.register(here.u, item.id, asked)
    here.after.timers = True
    return Done(body={"error": "no_device", "note": prompt, "waiting": True}, ends_turn=True)
