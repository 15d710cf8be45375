from __future__ import annotations

from typing import Final

from aiohttp.test_utils import TestClient, TestServer

from fixtures.web_hub import AUTH, Behind
from upright.core.roles import Role
from upright.web import reads
from upright.web.app import make_app, routes
from upright.web.needs import ANYBODY, NEEDS, OUTSIDE


def _served() -> set[str]:
    return {f"{route.method} {route.path}" for route in routes()}


def test_every_path_says_what_it_needs_and_nothing_else_is_in_the_table() -> None:
    assert _served() == set(NEEDS)


def test_only_what_proves_itself_or_tells_nothing_is_open_to_everybody() -> None:
    opened = {name for name, need in NEEDS.items() if need.role is None}
    assert opened == {
        "POST /hooks/{source}",
        "GET /v1/device",
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
        "GET /sign-in",
        "GET /sign-in/link/{code}",
        "GET /sign-in/start",
        "GET /sign-in/return",
        "GET /static/{name}",
    }
    assert ANYBODY.role is None
    assert OUTSIDE.role is None


OWN: Final = frozenset(
    {
        "POST /v1/tokens",
        "POST /v1/tokens/{id}/revoke",
        "POST /v1/sign-ins/{id}/end",
        "POST /sign-out",
        "POST /v1/work/{id}/private",
        "POST /v1/work/{id}/share",
    }
)
"""What changes one's own things alone."""


def test_whatever_changes_more_than_ones_own_needs_more_than_a_viewer() -> None:
    for name, need in NEEDS.items():
        if not name.startswith(("GET ", "POST /hooks/")) and name not in OWN:
            assert need.role is not None, name
            assert need.role > Role.VIEWER, name


async def test_a_path_that_nobody_has_given_a_need_is_not_served(behind: Behind) -> None:
    app = make_app(behind.parts())
    app.router.add_get("/v1/forgotten", reads.status)
    async with TestClient(TestServer(app)) as client:
        answered = await client.get("/v1/forgotten", headers=AUTH)
        assert (answered.status, (await answered.json())["code"]) == (403, "need.unknown")
    await behind.store.close()
