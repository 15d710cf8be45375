"""The program for files, as a process on a real clone: bounded, beneath the worktree, no links."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

from fixtures.clone import Clone
from upright_execd.files import reading, worktree
from upright_execd.workspace import SCRATCH_SUFFIX

OUT = [
    "../README",
    "src/../../README",
    "/etc/passwd",
    ".git/config",
    "src/.GIT/config",
    "a\0b",
    "link/app.py",
    "filelink",
]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    clone = Clone(tmp_path / "app")
    clone.make()
    return clone


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ------------------------------------------------------------------ the worktree (E10.3)
@pytest.mark.clause("E10.3", "B17.3")
def test_the_first_use_makes_the_worktree_on_a_branch_of_its_own(clone: Clone) -> None:
    said = clone.ask("worktree")
    assert (said["exit"], said["path"]) == (0, str(clone.worktree))
    assert (said["branch"], said["head"], said["changed"]) == ("upright/one", clone.sha, [])
    assert clone.git("branch", "--show-current").strip() == "main"
    assert clone.worktree.with_name("one.lock").read_text() == "wk_1\n"


@pytest.mark.clause("E10.3", "B17.3")
def test_a_worktree_has_one_writer(clone: Clone) -> None:
    clone.ask("worktree")
    clone.item = "wk_2"
    said = clone.ask("write_file", b"mine", path="README")
    assert (said["exit"], said["code"]) == (1, "locked")
    assert "wk_1" in said["error"]
    assert (clone.worktree / "README").read_text() == "It adds.\n"


@pytest.mark.clause("E10.3", "B17.3")
def test_of_many_items_that_reach_for_one_worktree_one_has_it(clone: Clone) -> None:
    said: dict[str, int] = {}

    def reach(item: str) -> None:
        said[item] = Clone.ask(
            _same(clone, item), "write_file", item.encode(), path="who", expected_sha256=""
        )["exit"]

    threads = [threading.Thread(target=reach, args=(f"wk_{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [item for item, code in said.items() if code == 0]
    assert (clone.worktree / "who").read_text() == winner


def _same(clone: Clone, item: str) -> Clone:
    other = Clone(clone.path, item=item)
    other.sha = clone.sha
    return other


def test_a_worktree_that_was_made_by_hand_is_taken_over(clone: Clone) -> None:
    clone.git("worktree", "add", "-q", "-b", "fix", str(clone.worktree))
    assert clone.ask("read_file", path="README")["text"] == "It adds.\n"


@pytest.mark.clause("E10.3", "B17.3")
def test_a_worktree_with_something_to_lose_stays_and_its_branch_always(clone: Clone) -> None:
    clone.ask("write_file", b"new\n", path="notes/new.txt")
    said = clone.ask("remove_worktree")
    assert said["exit"] == 1
    assert "not committed" in said["error"]
    clone.git("add", "-A", cwd=clone.worktree)
    clone.git("commit", "-q", "-m", "Add", cwd=clone.worktree)
    assert clone.ask("remove_worktree")["exit"] == 0
    assert not clone.worktree.exists()
    assert "upright/one" in clone.git("branch")
    assert clone.ask("read_file", path="notes/new.txt")["text"] == "new\n"  # on the branch again


@pytest.mark.clause("E10.4")
def test_a_commit_that_is_not_here_is_said_before_anything_is_made(clone: Clone) -> None:
    clone.sha = "c0ffee" * 6 + "c0ff"
    said = clone.ask("worktree")
    assert (said["exit"], said["code"]) == (1, "not_found")
    assert "git fetch" in said["error"]
    assert not clone.worktree.exists()


def test_hooks_of_the_clone_do_not_run(clone: Clone) -> None:
    hook = clone.path / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {clone.path}/ran\n")
    hook.chmod(0o755)
    assert clone.ask("worktree")["exit"] == 0
    assert not (clone.path / "ran").exists()


def test_the_folder_of_worktrees_is_the_daemons() -> None:
    assert worktree.SCRATCH_SUFFIX == SCRATCH_SUFFIX


# ------------------------------------------------------------------ reading
def test_a_file_is_read_by_lines_and_on_from_where_it_was_left(clone: Clone) -> None:
    text = "".join(f"line {n}\n" for n in range(1, 12))
    clone.ask("write_file", text.encode(), path="long")
    first = clone.ask("read_file", path="long", limit=4)
    assert (first["text"], first["next"]) == ("line 1\nline 2\nline 3\nline 4\n", 5)
    rest = clone.ask("read_file", path="long", offset=first["next"])
    assert first["text"] + rest["text"] == text
    assert "next" not in rest
    assert rest["sha256"] == sha(text.encode())


def test_an_answer_is_bounded_whatever_the_file(clone: Clone) -> None:
    clone.ask("write_file", b"x" * 3_000_000 + b"\nend\n", path="wide")
    clone.ask("write_file", b"0123456789\n" * 100_000, path="tall")
    wide, tall = clone.ask("read_file", path="wide"), clone.ask("read_file", path="tall")
    assert wide["text"].endswith("[…cut]\nend\n")
    assert len(wide["text"]) < 3000
    assert tall["next"] == 2001
    (clone.worktree / "huge").write_bytes(b"")
    os.truncate(clone.worktree / "huge", reading.MAX_FILE_BYTES + 1)
    assert clone.ask("read_file", path="huge")["exit"] == 1


def test_a_binary_file_is_said_to_be_one(clone: Clone) -> None:
    clone.ask("write_file", b"\x7fELF\0\0", path="bin")
    said = clone.ask("read_file", path="bin")
    assert said["binary"]
    assert "text" not in said


def test_a_fifo_or_a_folder_is_no_file_and_hangs_nobody(clone: Clone) -> None:
    clone.ask("worktree")
    os.mkfifo(clone.worktree / "pipe")
    assert clone.ask("read_file", path="pipe")["code"] == "not_found"
    assert clone.ask("read_file", path="src")["code"] == "not_found"
    assert clone.ask("read_file", path="src/none")["code"] == "not_found"


def test_a_folder_is_listed_in_order_and_to_a_depth(clone: Clone) -> None:
    clone.ask("worktree")
    (clone.worktree / "to").symlink_to("src")
    assert clone.ask("list")["entries"] == ["README", "src/", "to@"]
    assert clone.ask("list", depth=2)["entries"] == ["README", "src/", "src/app.py", "to@"]
    assert clone.ask("list", path="src")["entries"] == ["app.py"]
    for n in range(reading.MAX_ENTRIES + 5):
        (clone.worktree / "src" / f"f{n:04d}").touch()
    said = clone.ask("list", path="src")
    assert len(said["entries"]) == reading.MAX_ENTRIES
    assert "cut" in said


def test_search_finds_lines_in_what_git_would_track(clone: Clone) -> None:
    clone.ask("write_file", b"*.log\n", path=".gitignore")
    clone.ask("write_file", b"return 1\n", path="noise.log")
    clone.ask("write_file", b"return 2\n", path="src/two.py")
    hits = clone.ask("search", pattern=r"return \d")["hits"]
    assert [(hit["path"], hit["line"]) for hit in hits] == [("src/app.py", 2), ("src/two.py", 1)]
    assert len(clone.ask("search", pattern="return", glob="two.*")["hits"]) == 1
    assert clone.ask("search", pattern="return", path="README")["hits"] == []
    assert clone.ask("search", pattern="(")["exit"] == 1
    clone.ask("write_file", b"return\n" * 1000, path="many")
    assert len(clone.ask("search", pattern="return")["hits"]) == reading.MAX_HITS


# ------------------------------------------------------------------ writing
def test_a_file_is_written_whole_keeps_its_mode_and_leaves_nothing_beside_it(clone: Clone) -> None:
    clone.ask("worktree")
    (clone.worktree / "README").chmod(0o755)
    said = clone.ask("write_file", "Grüße\n".encode(), path="README")
    assert said["sha256"] == sha((clone.worktree / "README").read_bytes())
    assert (clone.worktree / "README").stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in clone.worktree.iterdir()) == [".git", "README", "src"]
    assert (clone.path / "README").read_text() == "It adds.\n"


def test_what_changed_since_it_was_read_is_not_overwritten(clone: Clone) -> None:
    read = clone.ask("read_file", path="README")["sha256"]
    (clone.worktree / "README").write_text("Somebody was here.\n")
    said = clone.ask("write_file", b"mine\n", path="README", expected_sha256=read)
    assert (said["exit"], said["code"]) == (1, "changed")
    fresh = clone.ask("write_file", b"mine\n", path="README", expected_sha256="")
    assert fresh["code"] == "changed"
    now = clone.ask("read_file", path="README")["sha256"]
    assert clone.ask("write_file", b"mine\n", path="README", expected_sha256=now)["exit"] == 0


def test_a_patch_is_applied_whole_or_not_at_all(clone: Clone) -> None:
    good = (
        "--- a/src/app.py\n+++ b/src/app.py\n@@ -1,2 +1,2 @@\n def one():\n"
        "-    return 1\n+    return 2\n"
    )
    bad = "--- a/README\n+++ b/README\n@@ -1 +1 @@\n-It subtracts.\n+It fails.\n"
    said = clone.ask("apply_patch", (good + bad).encode())
    assert said["exit"] == 1
    assert "README" in said["error"]
    assert (clone.worktree / "src" / "app.py").read_text() == "def one():\n    return 1\n"
    said = clone.ask("apply_patch", good.encode())
    assert said["applied"] == [{"path": "src/app.py", "added": "1", "removed": "1"}]
    assert (clone.worktree / "src" / "app.py").read_text() == "def one():\n    return 2\n"


@pytest.mark.parametrize("path", ["../README", ".git/config", "link/x", "/tmp/x"])
def test_a_patch_goes_nowhere_else(clone: Clone, path: str) -> None:
    clone.ask("worktree")
    (clone.worktree / "link").symlink_to(clone.path)
    before = (clone.path / "README").read_text()
    patch = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+evil\n"
    assert clone.ask("apply_patch", patch.encode())["exit"] == 1
    assert (clone.path / "README").read_text() == before
    assert not (clone.path / "x").exists()


# ------------------------------------------------------------------ nowhere else
@pytest.mark.clause("E8.2")
@pytest.mark.parametrize("path", OUT)
def test_no_path_leads_out_whoever_made_the_link(clone: Clone, path: str) -> None:
    clone.ask("worktree")
    (clone.worktree / "link").symlink_to(clone.path / "src")
    (clone.worktree / "filelink").symlink_to(clone.path / "README")
    for said in (
        clone.ask("read_file", path=path),
        clone.ask("write_file", b"evil", path=path),
        clone.ask("list", path=path),
    ):
        assert said["exit"] == 1
        assert said["code"] in {"outside", "not_found"}
    assert (clone.path / "README").read_text() == "It adds.\n"
    assert (clone.path / "src" / "app.py").read_text() == "def one():\n    return 1\n"


@pytest.mark.clause("E8.2")
def test_a_worktree_that_is_a_link_is_not_entered(clone: Clone) -> None:
    clone.worktree.parent.mkdir()
    clone.worktree.symlink_to(clone.path)
    assert clone.ask("read_file", path="README")["code"] == "outside"
    clone.worktree.parent.rename(clone.path.with_name("away"))
    clone.worktree.parent.symlink_to(clone.path)
    assert clone.ask("read_file", path="README")["code"] == "outside"


def test_a_request_that_makes_no_sense_is_answered_so(clone: Clone) -> None:
    assert clone.ask("dance")["exit"] == 2
    assert clone.ask("read_file")["exit"] == 2
    clone.name = "--force"
    assert clone.ask("worktree")["exit"] == 1
