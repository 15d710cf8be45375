"""Needs: what each path asks of who comes; a path that isn't in the table is not served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from aiohttp import web

from upright.core.roles import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a path asks.

    ``role`` None: everybody may come, unasked. ``runs``: the grant to run commands on devices,
    too. ``any_host``: under whatever name the hub is called (a probe, a provider's webhook).
    ``kept``: the audit trail tells of it although it only looks.
    """

    role: Role | None = None
    runs: bool = False
    any_host: bool = False
    kept: bool = False


ANYBODY: Final = Need()
OUTSIDE: Final = Need(any_host=True)
VIEWER: Final = Need(role=Role.VIEWER)
OPERATOR: Final = Need(role=Role.OPERATOR)
ADMIN: Final = Need(role=Role.ADMIN)
RUNS: Final = Need(role=Role.OPERATOR, runs=True)

NEEDS: Final[Mapping[str, Need]] = MappingProxyType(
    {
        # each proves itself in its own way, or tells nothing about anybody
        "POST /hooks/{source}": OUTSIDE,
        "GET /v1/device": ANYBODY,
        "GET /healthz": OUTSIDE,
        "GET /readyz": OUTSIDE,
        "GET /metrics": ANYBODY,
        "GET /sign-in": ANYBODY,
        "GET /sign-in/link/{code}": ANYBODY,
        "GET /sign-in/start": ANYBODY,
        "GET /sign-in/return": ANYBODY,
        "GET /static/{name}": ANYBODY,
        # looking
        "GET /": VIEWER,
        "GET /triggers/{id}": VIEWER,
        "GET /needs": VIEWER,
        "GET /devices": VIEWER,
        "GET /v1/events": VIEWER,
        "GET /v1/events/last": VIEWER,
        "GET /v1/events/list": VIEWER,
        "GET /v1/raw/{id}": VIEWER,
        "GET /v1/replay": VIEWER,
        "GET /v1/openapi.json": VIEWER,
        "GET /v1/status": VIEWER,
        "GET /v1/inbox": VIEWER,
        "GET /v1/triggers/{id}": VIEWER,
        "GET /v1/triggers/{id}/neighbours": VIEWER,
        "GET /v1/why/{id}": VIEWER,
        "GET /v1/show/{id}": VIEWER,
        "GET /v1/work": VIEWER,
        "GET /v1/work/{id}": VIEWER,
        "GET /v1/sessions": VIEWER,
        "GET /v1/sessions/{id}": VIEWER,
        "GET /v1/sessions/{id}/entries": VIEWER,
        "GET /v1/requests": VIEWER,
        "GET /v1/requests/{id}": VIEWER,
        "GET /v1/devices": VIEWER,
        "GET /v1/devices/{id}": VIEWER,
        "GET /v1/sources": VIEWER,
        "GET /v1/costs": VIEWER,
        "GET /v1/costs/by": VIEWER,
        "GET /v1/costs/forecast": VIEWER,
        "GET /v1/budgets": VIEWER,
        "GET /v1/models": VIEWER,
        "GET /v1/stalled": VIEWER,
        "GET /v1/waits": VIEWER,
        "GET /v1/outbox": VIEWER,
        "GET /v1/outbox/{id}": VIEWER,
        "GET /v1/stats": VIEWER,
        "GET /v1/rules": VIEWER,
        "GET /v1/rules/history": VIEWER,
        "GET /v1/people": VIEWER,
        "GET /v1/follows": VIEWER,
        # what is one's own
        "GET /v1/me": VIEWER,
        "GET /v1/tokens": VIEWER,
        "POST /v1/tokens": VIEWER,
        "POST /v1/tokens/{id}/revoke": VIEWER,
        "GET /v1/sign-ins": VIEWER,
        "POST /v1/sign-ins/{id}/end": VIEWER,
        "POST /sign-out": VIEWER,
        "POST /v1/work/{id}/private": VIEWER,
        "POST /v1/work/{id}/share": VIEWER,
        "GET /v1/agents": VIEWER,
        "GET /v1/agents/{name}": VIEWER,
        # saying what shall be done
        "POST /triggers/{id}/again": OPERATOR,
        "POST /work/{id}/cancel": OPERATOR,
        "POST /needs/{id}/approve": OPERATOR,
        "POST /needs/{id}/deny": OPERATOR,
        "POST /needs/{id}/edit": OPERATOR,
        "POST /needs/{id}/answer": OPERATOR,
        "POST /needs/{id}/again": OPERATOR,
        "POST /devices/{id}/revoke": OPERATOR,
        "POST /v1/triggers/{id}/again": OPERATOR,
        "POST /v1/sessions/{id}/say": OPERATOR,
        "POST /v1/sessions/{id}/interrupt": OPERATOR,
        "POST /v1/sessions/{id}/ask": OPERATOR,
        "POST /v1/sessions/{id}/stop": OPERATOR,
        "POST /v1/requests/{id}/answer": OPERATOR,
        "POST /v1/requests/{id}/approve": OPERATOR,
        "POST /v1/requests/{id}/deny": OPERATOR,
        "POST /v1/requests/{id}/edit": OPERATOR,
        "POST /v1/requests/{id}/ask-again": OPERATOR,
        "POST /v1/sources/{name}/retry": OPERATOR,
        "POST /v1/sources/{name}/test": OPERATOR,
        "POST /v1/waits/{id}/wake": OPERATOR,
        "POST /v1/models/retry": OPERATOR,
        "POST /v1/models/probe": OPERATOR,
        "POST /v1/waits/{id}/cancel": OPERATOR,
        "POST /v1/work/{id}/cancel": OPERATOR,
        "POST /v1/work/{id}/unblock": OPERATOR,
        "POST /v1/outbox/{id}/retry": OPERATOR,
        "POST /v1/outbox/{id}/discard": OPERATOR,
        "POST /v1/follows": OPERATOR,
        "POST /v1/follows/leave": OPERATOR,
        "POST /v1/devices/{id}/revoke": OPERATOR,
        # letting commands run, and where
        "POST /devices/pair/{code}": RUNS,
        "GET /v1/pairings": RUNS,
        "GET /v1/pairings/{code}": RUNS,
        "POST /v1/pairings/{code}/approve": RUNS,
        "POST /v1/devices/{id}/share": RUNS,
        "POST /v1/devices/{id}/unshare": RUNS,
        "POST /v1/devices/{id}/rename": RUNS,
        "POST /v1/work/{id}/move": RUNS,
        # who is who, what gets in, and everything at once
        "POST /v1/rules": ADMIN,
        "POST /v1/budgets": ADMIN,
        "POST /v1/budgets/clear": ADMIN,
        "POST /v1/agents": ADMIN,
        "POST /v1/agents/sync": ADMIN,
        "POST /v1/people": ADMIN,
        "POST /v1/people/link": ADMIN,
        "GET /v1/backup": Need(role=Role.ADMIN, kept=True),
        "GET /v1/audit": ADMIN,
        "GET /v1/accounts": ADMIN,
        "POST /v1/accounts/{name}/give": ADMIN,
        "POST /v1/accounts/{name}/revoke": ADMIN,
        "POST /v1/accounts/{name}/link": ADMIN,
    }
)


def name_of(request: web.Request) -> str | None:
    """Return a request's line in the table: its method and its path's pattern; None: no path."""
    resource = request.match_info.route.resource
    if resource is None:
        return None
    method = "GET" if request.method == "HEAD" else request.method
    return f"{method} {resource.canonical}"
