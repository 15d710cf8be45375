"""Schemathesis over the API's document, against a hub that runs: bounded in number and in time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, cast

import aiohttp
import hypothesis
import pytest
import pytest_asyncio
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from fixtures.eventually import eventually
from fixtures.spine import clean_environment
from upright.cli.demo.client import Web

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(120)]
EXAMPLES: Final = 5
ENDLESS: Final = frozenset({"/v1/events", "/v1/device", "/v1/backup"})
CHECKS: Final = (
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    """A hub of its own, without a model or a device: nothing that is fuzzed hurts another test."""
    home = tmp_path_factory.mktemp("fuzzed")
    ready = home / "ready"
    with (home / "hub.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "upright", "up", "--port", "0", "--ready-file", str(ready)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**clean_environment(), "UPRIGHT_HOME": str(home)},
        )
        try:
            url = await eventually(lambda: _text(ready), within_s=30)
            token = await eventually(lambda: _text(home / "api.token"))
            async with aiohttp.ClientSession() as session:
                yield Web(session=session, base=url, token=token)
        finally:
            process.terminate()
            await process.wait()


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8").strip() or None if path.exists() else None


async def test_whatever_is_sent_the_answer_is_one_that_the_document_names(hub: Web) -> None:
    said = await hub.get("/v1/openapi.json")
    tried = await asyncio.to_thread(fuzz, said, hub)
    assert tried > 60  # paths


def fuzz(said: dict[str, Any], hub: Web) -> int:
    """Try each path a few times; return how many were tried."""
    schema = schemathesis.openapi.from_dict(said)
    headers = {"Authorization": f"Bearer {hub.token}"}
    tried = 0
    for result in schema.get_all_operations():
        operation = cast("Ok[Any]", result).ok()
        if operation.path in ENDLESS:
            continue
        tried += 1

        @hypothesis.settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy())
        def try_one(case: schemathesis.Case[Any]) -> None:
            response = case.call(base_url=hub.base, headers=headers, timeout=10)
            case.validate_response(response, checks=list(CHECKS))

        try_one()
    return tried
