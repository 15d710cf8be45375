"""Record: what a request does is in the audit trail, also when it was refused (S5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from upright.store import audit_trail
from upright.store.acting import Deed, acting
from upright.web.csrf import SAFE
from upright.web.needs import Need
from upright.web.principal import PRINCIPAL
from upright.web.problems import PARTS, translate
from upright.web.remote import remote_of

DEED: Final = web.RequestKey("deed", Deed)


def action_of(request: web.Request) -> str:
    """Name what a request does, by its path's pattern: ``requests.approve``, ``people.add``."""
    resource = request.match_info.route.resource
    pattern = resource.canonical if resource is not None else request.path
    words = [part for part in pattern.split("/") if part and part != "v1" and "{" not in part]
    verb = {"GET": "read", "HEAD": "read"}.get(request.method, "add" if len(words) == 1 else "")
    return ".".join([*words, verb] if verb else words)


@asynccontextmanager
async def kept(request: web.Request, need: Need) -> AsyncIterator[None]:
    """Have the deed of a request written down: with its transaction, or when it is refused.

    What only looks is not written down, unless it was refused, or takes everything (*need.kept*).
    """
    doors = request.app[PARTS].doors
    who = request[PRINCIPAL]
    deed = Deed(
        who=who.name,
        account=who.account,
        via=who.via.value,
        action=action_of(request),
        object=" ".join(request.match_info.values()),
        origin=remote_of(request, doors.terms.proxies),
    )
    looks = request.method in SAFE and not need.kept
    request[DEED] = deed
    try:
        if looks:
            yield
            return
        with acting(deed):
            yield
    except Exception as error:
        code = translate(error, request).code
        if not deed.kept and (not looks or code in _REFUSALS):
            await _add(request, deed, code)
        raise
    if not deed.kept:
        await _add(request, deed, audit_trail.DONE)


_REFUSALS: Final = frozenset({"role.too_low", "exec.missing"})


async def _add(request: web.Request, deed: Deed, outcome: str) -> None:
    await request.app[PARTS].doors.units.write(lambda u: audit_trail.add(u, deed, outcome))
