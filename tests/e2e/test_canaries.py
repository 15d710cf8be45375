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


@pytest.mark.case("OC/50614")
async def test_planted_secrets_are_in_no_file_and_no_log(tmp_path: Path) -> None:
    async with raised(tmp_path) as spine:
        await open_pull(spine, 7)
        await spine.kill("execd")
        await spine.start_execd()
        await spine.kill("hub")
        await spine.start_hub()
        await spine.until(spine.online)
        secrets = await asyncio.to_thread(secrets_of, spine)
        assert await asyncio.to_thread(leaks, spine, secrets) == []
        lines = "\n".join(spine.lines).encode()
    assert set(secrets) >= KEPT
    assert all(len(secret) >= 16 for secret in secrets.values())
    assert not [name for name, secret in secrets.items() if secret in lines]
