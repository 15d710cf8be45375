"""The demo's whole story with its rows in PostgreSQL; nothing else about it changes."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest
import sqlalchemy as sa

from fixtures.databases import opened_by_the_databases_time
from fixtures.spine import clean_environment
from upright.store import oracle
from upright.store.address import server
from upright.store.tables import OUTBOX, TRIGGER, WORK


@pytest.mark.timeout(80)  # it may take 60 s by its own word, on a busy machine
async def test_a_red_run_turns_green(postgres: str, tmp_path: Path) -> None:
    variables = {"UPRIGHT_DATABASE_URL": postgres, "TMPDIR": str(tmp_path)}
    demo = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "upright", "demo", "--json", "--seed", "7"),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env={**clean_environment(), **variables},
    )
    async with asyncio.timeout(75):
        out, err = await demo.communicate()
    assert demo.returncode == 0, err.decode()
    assert all(check["ok"] for check in json.loads(out)["checks"])
    store = await opened_by_the_databases_time(server(postgres))
    kinds = await store.read(lambda c: set(c.scalars(sa.select(TRIGGER.c.kind))))
    states = await store.read(lambda c: list(c.scalars(sa.select(WORK.c.state))))
    sent = await store.read(lambda c: list(c.scalars(sa.select(OUTBOX.c.state))))
    asleep = await store.read(oracle.stalled)
    await store.close()
    assert {"ci.failed", "ci.fixed"} <= kinds
    assert (states, sent, asleep) == (["completed"], ["sent"], [])
