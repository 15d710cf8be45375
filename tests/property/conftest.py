"""A real database for each module: its schema made once, every example rolled back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from fixtures.machine_bench import Tally
from upright.store import schema
from upright.store.writer import open_engine


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Connection]:
    path = tmp_path_factory.mktemp("machine") / "s.db"
    schema.create(path)
    engine = open_engine(str(path))
    with engine.connect() as opened:
        yield opened
    engine.dispose()


@pytest.fixture
def tally(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Tally:
    """Count over the parts of a machine, wherever they run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "met"
    folder.mkdir(exist_ok=True)
    return Tally(folder)
