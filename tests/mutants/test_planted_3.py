"""Bugs from the field, planted on purpose: a share of the list, each found by its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from docsgen.mutants import Mutant
from fixtures.planted import check_is_found, share


@pytest.mark.timeout(300)  # a tree is copied, and a part of the suite run in it
@pytest.mark.parametrize("mutant", share(3), ids=lambda mutant: mutant.name)
def test_the_suite_finds_it(mutant: Mutant, tmp_path: Path) -> None:
    check_is_found(mutant, tmp_path)
