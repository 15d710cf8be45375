"""Secrets stand where they are kept and nowhere else: in no log, database, spool or URL."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fixtures.pulls import open_pull
from fixtures.spine import SECRET, Spine, raised

pytestmark = pytest.mark.timeout(90)
ENDLESS: Final = frozenset({"/v1/events", "/v1/device", "/v1/backup"})
KEPT: Final = frozenset({"api.token", "hub.key", "device.key"})


def forms(secret: bytes) -> Iterator[bytes]:
    """Yield a secret as it might be written down."""
    yield secret
    yield secret.hex().encode()
    with contextlib.suppress(ValueError):
        yield bytes.fromhex(secret.decode())
    yield base64.b64encode(secret).rstrip(b"=")
    yield base64.urlsafe_b64encode(secret).rstrip(b"=")


def files(folder: Path) -> list[Path]:
    """Return every regular file."""
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def secrets_of(spine: Spine) -> dict[str, bytes]:
    """Read what only its keeper may have."""
    kept = {path.name: path.read_bytes().strip() for path in files(spine.plan.folder)}
    found = {name: kept[name] for name in KEPT if name in kept}
    return {**found, SECRET: spine.stage.env[SECRET].encode()}


def leaks(spine: Spine, secrets: dict[str, bytes]) -> list[str]:
    """List the files that hold a secret which is not theirs to keep."""
    found = []
    for path in files(spine.plan.folder):
        data = path.read_bytes()
        found += [
            f"{name} in {path.relative_to(spine.plan.folder)}"
            for name, secret in secrets.items()
            if path.name != name and any(form in data for form in forms(secret))
        ]
    return found


async def said(spine: Spine) -> dict[str, bytes]:
    """Ask the hub for whatever it tells without an id: API, pages, gauges, problems, programs."""
    found: dict[str, bytes] = {}
    described = await spine.hub.get("/v1/openapi.json")
    paths = [path for path, ways in described["paths"].items() if "get" in ways and "{" not in path]
    more = ("/", "/needs", "/devices", "/healthz", "/readyz", "/v1/nowhere", "/v1/work/wk_no")
    headers = {"Authorization": f"Bearer {spine.hub.token}"}
    for path in sorted({*paths, *more} - ENDLESS):
        async with spine.hub.session.get(f"{spine.hub.base}{path}", headers=headers) as answer:
            found[path] = await answer.read()
    async with spine.hub.session.post(f"{spine.hub.base}/hooks/small", data=b"{") as answer:
        found["a bad signature"] = await answer.read()
    trigger = (await spine.inbox())[0]["id"]
    for words in (("doctor",), ("doctor", "--json"), ("why", trigger), ("show", trigger)):
        typed = await spine.upright(*words)
        found[" ".join(words)] = (typed.out + typed.err).encode()
    return found


@pytest.mark.case("OC/50614")
@pytest.mark.clause("B14.5")
async def test_planted_secrets_are_in_no_file_no_log_and_no_answer(tmp_path: Path) -> None:
    async with raised(tmp_path) as spine:
        await open_pull(spine, 7)
        await spine.kill("execd")
        await spine.start_execd()
        await spine.kill("hub")
        await spine.start_hub()
        await spine.until(spine.online)
        secrets = await asyncio.to_thread(secrets_of, spine)
        copied = await spine.upright("db", "backup", str(tmp_path / "copy"))
        assert copied.code == 0, copied.err
        told = await said(spine)
        assert await asyncio.to_thread(leaks, spine, secrets) == []
        lines = "\n".join(spine.lines).encode()
    assert set(secrets) >= KEPT
    assert len(told) > 30
    assert [
        f"{name} in {where}"
        for where, data in told.items()
        for name, secret in secrets.items()
        if any(form in data for form in forms(secret))
    ] == []
    assert all(len(secret) >= 16 for secret in secrets.values())
    assert not [name for name, secret in secrets.items() if secret in lines]
