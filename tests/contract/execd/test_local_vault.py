"""Secrets by name: what a command is given, and that nothing else ever holds it (E4.1, E8)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fixtures.local_execd import Local, end_all, running
from fixtures.require import skip_or_fail
from upright_execd.ownerline import ask
from upright_wire.command import Ending, Started, State
from upright_wire.spec import Confinement

CANARY = "canary-5c2b"
TOKEN = (("FORGE_TOKEN", "forge"),)


def holders(folder: Path) -> list[str]:
    """Return the files below *folder* that hold the canary."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if CANARY.encode() in path.read_bytes()]


async def keep(local: Local, value: str) -> None:
    await asyncio.to_thread(local.daemon.house.vault.keep, "forge", value, in_file=True)


@pytest.mark.clause("E4.1", "E8.5")
@pytest.mark.parametrize("padding", [0, 99_000], ids=["warm", "cold"])
async def test_a_secret_reaches_the_command_and_no_file_and_no_log(
    tmp_path: Path, padding: int, caplog: pytest.LogCaptureFixture
) -> None:
    environment = {"PATH": "/usr/bin:/bin", "X": "x" * padding}
    async with running(tmp_path, environment=environment) as local:
        await keep(local, CANARY)
        script = "printf %s $FORGE_TOKEN | tr c C; while [ ! -e stop ]; do sleep 0.01; done"
        await local.start("sh", "-c", script, secrets=TOKEN)
        assert await asyncio.to_thread(holders, tmp_path) == ["secrets.json"]
        (local.root / "stop").touch()
        await local.final()
        assert await local.output() == [CANARY.replace("c", "C").encode()]
        assert await asyncio.to_thread(holders, tmp_path) == ["secrets.json"]
        log = await asyncio.to_thread(local.daemon.house.paths.audit.read_text)
    assert '"secrets":["forge"]' in log
    assert CANARY not in caplog.text
    end_all(tmp_path / "home")


@pytest.mark.clause("E8.4")
async def test_in_mode_ask_the_owner_is_asked_and_shown_which(tmp_path: Path) -> None:
    async with running(tmp_path, ('mode = "ask"',)) as local:
        if Confinement.WORKSPACE not in local.daemon.house.enforceable:
            skip_or_fail("landlock", "kernel: Landlock ABI 3 (Linux 6.2)")
        await keep(local, CANARY)
        order = local.order("true", secrets=TOKEN, confinement=Confinement.WORKSPACE)
        assert await local.commands.exec(order) is None
        await local.reached("jb_1", State.AWAITING_CONSENT)
        (question,) = (await said(local))["questions"]
        assert (question["reason"], question["secrets"]) == (
            "secrets",
            ['"FORGE_TOKEN from forge"'],
        )
        assert "of its own" in question["always"]
        await local.commands.cancel("jb_1")
        assert (await local.final()).ending is Ending.CANCELLED


async def said(local: Local) -> dict[str, Any]:
    return await asyncio.to_thread(ask, local.daemon.house.paths, {"op": "consent"})


@pytest.mark.clause("E4.1", "E8.6")
async def test_who_is_to_have_no_secrets_and_who_names_none_that_is_there_starts_nothing(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as local:
        missing = await local.run("touch", "ran", secrets=TOKEN)
        assert (missing.ending, missing.text) == (Ending.DENIED, "secrets_unknown")
        profile = Confinement.WORKSPACE_NO_NETWORK
        if profile in local.daemon.house.enforceable:
            await keep(local, CANARY)
            kept = await local.run(
                "touch", "ran", secrets=TOKEN, confinement=profile, command_id="jb_2"
            )
            assert (kept.text, kept.started) == ("secrets_confined", Started.NO)
        assert not (local.root / "ran").exists()


@pytest.mark.clause("E8.5")
async def test_no_secret_is_put_where_a_program_would_load_something(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        await keep(local, "/evil.so")
        secrets = (("LD_PRELOAD", "forge"),)
        outcome = await local.run("sh", "-c", "echo $LD_PRELOAD", secrets=secrets)
        assert outcome.env_dropped == ("LD_PRELOAD",)
        assert await local.output() == [b"\n"]
