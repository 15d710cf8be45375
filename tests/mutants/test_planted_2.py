"""Bugs from the field, planted on purpose: a share of the list, each found by its tests."""

from __future__ import annotations

import pytest

from docsgen.mutants import Mutant
from fixtures.planted import Bed, share


@pytest.mark.timeout(300)  # a part of the suite is run
@pytest.mark.parametrize("mutant", share(2), ids=lambda mutant: mutant.name)
def test_the_suite_finds_it(mutant: Mutant, bed: Bed) -> None:
    bed.check_is_found(mutant)
