"""A bed for each file of planted bugs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures.planted import Bed


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    made = Bed(tmp_path_factory.mktemp("bed"))
    yield made
    made.close()
