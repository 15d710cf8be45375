"""Pairing without a code: a hub of one's own on this machine, and its token file (E1.6)."""

from __future__ import annotations

import json
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from fixtures.eventually import eventually_awaited
from upright.settings.load import environment

pytestmark = pytest.mark.asyncio
ENDS_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Mine:
    """A hub on this machine, of this user, and a home for execd beside it."""

    folder: Path
    url: str

    @property
    def token(self) -> Path:
        return self.folder / "hub" / "api.token"

    async def call(self, module: str, *words: str) -> tuple[int, str, str]:
        process = await program(self.folder, module, *words)
        out, err = await process.communicate()
        return process.returncode or 0, out.decode(), err.decode()

    async def pair(self, *words: str, token: Path | None = None) -> tuple[int, str, str]:
        key = ("--key-file", str(self.folder / "execd" / "key"))
        given = ("--token-file", str(token or self.token))
        home = ("--home", str(self.folder / "execd"))
        return await self.call("upright_execd", *home, "pair", self.url, *key, *given, *words)

    async def devices(self) -> list[dict[str, object]]:
        code, out, err = await self.call("upright", "device", "ls", "--json")
        assert code == 0, err
        rows: list[dict[str, object]] = json.loads(out)
        return rows


async def program(folder: Path, module: str, *words: str) -> Process:
    env = environment() | {"UPRIGHT_HOME": str(folder / "hub"), "PYTHONUNBUFFERED": "1"}
    argv = (sys.executable, "-m", module, *words)
    return await create_subprocess_exec(*argv, env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)


@pytest_asyncio.fixture
async def mine(tmp_path: Path) -> AsyncIterator[Mine]:
    ready = tmp_path / "ready"
    up = await program(tmp_path, "upright", "up", "--port", "0", "--ready-file", str(ready))

    async def listens() -> bool:
        assert up.returncode is None
        return ready.exists() and bool(ready.read_text(encoding="ascii"))

    try:
        await eventually_awaited(listens, within_s=ENDS_S)
        yield Mine(folder=tmp_path, url=ready.read_text(encoding="ascii").strip())
    finally:
        up.terminate()
        _, said = await up.communicate()
        assert up.returncode == 0, said.decode()
    assert str(tmp_path / "hub" / "api.token") in said.decode()  # `up` tells the way


@pytest.mark.case("OC/35796")
@pytest.mark.clause("E1.6")
async def test_a_hub_of_ones_own_is_paired_by_its_token_file_and_asks_nobody(mine: Mine) -> None:
    code, out, err = await mine.pair()
    assert code == 0, err
    (device,) = await mine.devices()
    assert str(device["id"]) in out
    assert "digits" not in out  # nobody is asked to compare anything
    assert not any(
        "api.token" in path.read_text() for path in (mine.folder / "execd").glob("*.toml")
    )


@pytest.mark.clause("E1.6")
async def test_a_token_file_that_others_can_read_pairs_nothing(mine: Mine) -> None:
    mine.token.chmod(0o640)
    code, _, err = await mine.pair()
    assert (code, "nobody else can read" in err) == (4, True)
    mine.token.chmod(0o600)
    assert await mine.devices() == []


@pytest.mark.clause("E1.6")
async def test_a_wrong_token_pairs_nothing(mine: Mine) -> None:
    wrong = mine.folder / "wrong"
    wrong.touch(mode=0o600)
    wrong.write_text("not-the-token\n", encoding="ascii")
    code, _, err = await mine.pair(token=wrong)
    assert (code, "does not approve it" in err) == (4, True)
    assert await mine.devices() == []
