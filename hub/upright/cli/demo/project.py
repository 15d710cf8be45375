"""Project: the demo's repository: a bare remote, a developer's clone, a branch with a bug."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright.cli.demo.ledger import BUGS, RIGHT, Bug

IDENTITY: Final = ("-c", "user.name=Dev", "-c", "user.email=dev@localhost")
TESTS: Final = (sys.executable, "-m", "unittest", "-v")
TEST_COMMAND: Final = "python3 -m unittest -v"
GIT_S: Final = 30
TESTS_S: Final = 60
_WORDS: Final = ("payments", "reports", "statements", "reminders", "overdrafts", "exports")
_RED_FOR_EVER: Final = """

class PromiseTest(unittest.TestCase):
    def test_that_nothing_can_make_green(self):
        self.assertEqual(1, 2)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What a seed decides: the bug, the branch and the pull request's title."""

    seed: int
    bug: Bug
    branch: str
    title: str


def new_seed() -> int:
    """Return a seed that nobody knows beforehand."""
    return secrets.randbelow(1_000_000)


def draw(seed: int) -> Drawn:
    """Draw a run; the same seed draws the same."""
    bug = BUGS[seed % len(BUGS)]
    word = _WORDS[seed // len(BUGS) % len(_WORDS)]
    return Drawn(seed=seed, bug=bug, branch=f"feature/{word}-{seed}", title=f"Rework {word}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The repository on disk, and the commits that matter."""

    remote: Path
    checkout: Path
    branch: str
    base_sha: str
    red_sha: str


def git(folder: Path, *words: str) -> str:
    """Run git and return what it printed; CalledProcessError when it fails."""
    done = subprocess.run(  # noqa: S603  # argv is a list that we built
        ["git", *IDENTITY, *words],  # noqa: S607  # git is what the machine has as git
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=GIT_S,
    )
    return done.stdout.strip()


def make(folder: Path, drawn: Drawn, *, stays_red: bool) -> Project:
    """Make the remote, a clone of it, and a pushed branch with the bug.

    *stays_red* adds a test that no change of the sources can make green.
    """
    remote, checkout = folder / "remote.git", folder / "checkout"
    remote.mkdir()
    git(remote, "init", "--quiet", "--bare", "--initial-branch=main")
    git(folder, "clone", "--quiet", str(remote), str(checkout))
    git(checkout, "checkout", "--quiet", "-B", "main")
    _commit(checkout, RIGHT, "Begin the ledger")
    git(checkout, "push", "--quiet", "origin", "main")
    base_sha = git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "--quiet", "-b", drawn.branch)
    files = drawn.bug.files()
    if stays_red:
        files = {**files, "tests/test_money.py": files["tests/test_money.py"] + _RED_FOR_EVER}
    _commit(checkout, files, drawn.title)
    git(checkout, "push", "--quiet", "origin", drawn.branch)
    red_sha = git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "--quiet", "main")
    return Project(
        remote=remote,
        checkout=checkout,
        branch=drawn.branch,
        base_sha=base_sha,
        red_sha=red_sha,
    )


def _commit(checkout: Path, files: Mapping[str, str], subject: str) -> None:
    for name, text in files.items():
        path = checkout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "-m", subject)


def head(project: Project) -> str:
    """Return where the branch is on the remote now."""
    return git(project.remote, "rev-parse", f"refs/heads/{project.branch}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """A run of the project's tests at one commit, in a fresh clone."""

    green: bool
    output: str


def test_at(project: Project, sha: str, folder: Path) -> TestRun:
    """Run the tests at a commit, as a CI would: in a clone of the remote that nobody touched."""
    git(folder.parent, "clone", "--quiet", str(project.remote), str(folder))
    git(folder, "checkout", "--quiet", sha)
    done = subprocess.run(  # noqa: S603  # argv is a list that we built
        TESTS,
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=TESTS_S,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
    )
    return TestRun(green=done.returncode == 0, output=done.stdout + done.stderr)
