"""Diffs that git takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from upright.llm.scripted.unified import changed, diff

CASES = {
    "middle": ("a\nb\nc\n", "a\nB\nc\n"),
    "no newline before": ("a\nb", "a\nb\n"),
    "no newline after": ("a\nb\n", "a\nb"),
    "no newline at all": ("a\nb", "a\nc"),
    "carriage returns": ("a\r\nb\r\n", "a\r\nc\r\n"),
    "only feeds": ("a\x0cb\n", "a\x0cc\n"),
    "wide": ("Grüße\n世界 🚀\n", "Grüße\n世界\n"),
    "far apart": ("top\n" + "same\n" * 50 + "end\n", "new\n" + "same\n" * 50),
}


@pytest.mark.parametrize(("old", "new"), CASES.values(), ids=CASES.keys())
def test_git_makes_the_new_text_of_the_old_one(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "a file.txt"
    path.write_bytes(old.encode())
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=tmp_path,
        input=diff("a file.txt", old, new).encode(),
        check=True,
        timeout=10,
    )
    assert path.read_bytes().decode() == new


def test_equal_texts_have_no_diff() -> None:
    assert not diff("f", "a\n", "a\n")


def test_what_changed_is_told_without_the_header() -> None:
    patch = diff("f", "a\n  b\n--x\n", "a\n  c\n++y\n")
    assert (changed(patch, "-"), changed(patch, "+")) == ("b; --x", "c; ++y")
