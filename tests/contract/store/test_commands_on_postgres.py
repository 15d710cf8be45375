"""The commands that work on the database at rest, with a PostgreSQL named by the environment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.cli_hub import Terminal
from fixtures.databases import opened_by_the_databases_time
from upright.store.address import server
from upright.store.storage import Storage

pytestmark = pytest.mark.may_block  # commands run on loops of their own


@pytest.fixture
def upright(
    postgres: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Terminal:
    for name in ("UPRIGHT_HUB", "UPRIGHT_TOKEN", "UPRIGHT_CONFIG", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UPRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("UPRIGHT_DATABASE_URL", postgres)
    return Terminal(capsys)


def test_an_empty_database_is_said_filled_by_init_and_then_fine(upright: Terminal) -> None:
    before = upright("db", "check")
    assert before.code != 0
    assert "run: upright init" in before.err
    made = upright("init")
    assert "made postgresql://postgres@" in made.out
    assert "upright.db" not in made.out
    after = upright("db", "check", "--json")
    found = json.loads(after.out)
    assert (after.code, found["revision"]) == (0, found["wanted"])
    assert "was at revision" in upright("db", "migrate").out
    assert "made" not in upright("init").out


def findings(typed_out: str) -> dict[str, str]:
    return {each["id"]: each["verdict"] for each in json.loads(typed_out)["checks"]}


def test_doctor_looks_at_postgresql_and_says_nothing_of_sqlite(upright: Terminal) -> None:
    upright("init")
    found = findings(upright("doctor", "--json").out)
    assert found["database"] == "ok"
    assert found["work"] == "ok"
    assert "sqlite" not in found


@pytest.fixture
def running(upright: Terminal, postgres: str) -> Iterator[Storage]:
    """Hold the database as a hub does, on a loop of its own."""
    upright("init")
    with asyncio.Runner() as runner:
        store = runner.run(opened_by_the_databases_time(server(postgres)))
        yield store
        runner.run(store.close())


@pytest.mark.usefixtures("running")
def test_a_migration_is_refused_while_a_hub_runs(upright: Terminal) -> None:
    typed = upright("db", "migrate")
    assert typed.code != 0
    assert "in use by process" in typed.err


def test_a_server_that_is_away_is_said_in_one_line(
    upright: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPRIGHT_DATABASE_URL", "postgresql://me@127.0.0.1:1/upright")
    typed = upright("db", "check")
    assert typed.code != 0
    assert "127.0.0.1:1" in typed.err
    assert "Traceback" not in typed.err
