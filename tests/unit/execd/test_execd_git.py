from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from upright_execd.git import parse, remotes

PATH: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.mark.clause("E10.1")
def test_each_address_is_told_once_sorted_and_without_credentials() -> None:
    listing = (
        "origin\thttps://me:token@github.com/a/b.git (fetch)\n"
        "origin\thttps://me:token@github.com/a/b.git (push)\n"
        "up\tgit@github.com:a/b.git (fetch)\n"
        "local\t/a folder/with (brackets) (fetch)\n"
        "nonsense\n"
    )
    assert parse(listing) == (
        "/a folder/with (brackets)",
        "git@github.com:a/b.git",
        "https://github.com/a/b.git",
    )


@pytest.mark.clause("E10.1")
def test_the_remotes_of_a_repository_are_found(tmp_path: Path) -> None:
    for argv in (["init", "-q"], ["remote", "add", "origin", "https://example.org/x.git"]):
        subprocess.run(["git", "-C", str(tmp_path), *argv], check=True)
    assert remotes(tmp_path, PATH) == ("https://example.org/x.git",)


def test_without_a_repository_or_without_git_there_are_none(tmp_path: Path) -> None:
    assert remotes(tmp_path, PATH | {"GIT_DIR": "/nowhere"}) == ()
    assert remotes(tmp_path, {"PATH": str(tmp_path)}) == ()
