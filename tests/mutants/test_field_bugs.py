"""Bugs from the field, planted on purpose: each is found by the tests named beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from docsgen.mutants import Mutant, mutants

ROOT: Final = Path(__file__).parents[2]
COPIED: Final = ("hub", "execd", "plugins", "tests", "pyproject.toml")
TESTS_FAILED: Final = 1  # pytest's exit code; 2 to 5 would mean that nothing was tested


def planted(mutant: Mutant, folder: Path) -> Path:
    """Copy the tree and change the one line in it."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    path = folder / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.line) == 1, f"{mutant.file} has changed: plant {mutant.name} anew"
    path.write_text(text.replace(mutant.line, mutant.becomes), encoding="utf-8")
    return folder


def suite(folder: Path, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run tests of a copied tree against the sources beside them."""
    shelves = os.pathsep.join(str(folder / shelf) for shelf in ("hub", "execd", "plugins"))
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    one_database = ["-k", "not postgres"]  # the bugs are the same on both
    environment = {"PATH": os.defpath, "PYTHONPATH": shelves, "HOME": str(folder)}
    return subprocess.run(
        [*command, *one_database, *tests],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_there_are_at_least_ten() -> None:
    assert len(mutants()) >= 10


@pytest.mark.timeout(120)  # a tree is copied, and a part of the suite run in it
@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_the_suite_finds_it(mutant: Mutant, tmp_path: Path) -> None:
    done = suite(planted(mutant, tmp_path), mutant.tests)
    assert done.returncode == TESTS_FAILED, f"{mutant.case}\n{done.stdout[-3000:]}{done.stderr}"
