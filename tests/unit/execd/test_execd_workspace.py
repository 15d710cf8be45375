from __future__ import annotations

import os
from pathlib import Path

import pytest

from upright_execd.errors import DamagedError, NotFoundError, SettingsError
from upright_execd.workspace import Workspace, add, hold, is_in_place, listed, remove


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "real" / "repo"
    (root / "src").mkdir(parents=True)
    return root


def where(cwd: Path, *workspaces: Workspace) -> str | None:
    held = hold(str(cwd), workspaces)
    os.close(held.handle)
    return None if held.workspace is None else held.workspace.label


def test_a_folder_is_listed_under_its_real_path(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    added = add(tmp_path / "list.json", tmp_path / "link", None)
    assert listed(tmp_path / "list.json") == (added,)
    assert (added.path, added.label) == (root, "repo")
    assert (tmp_path / "list.json").stat().st_mode & 0o777 == 0o600


def test_listing_it_again_changes_its_label_only(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    add(file, root, None)
    add(file, root, "other")
    assert [(row.path, row.label) for row in listed(file)] == [(root, "other")]


@pytest.mark.parametrize("folder", [Path("/"), Path.home()])
def test_what_is_too_wide_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="too wide"):
        add(tmp_path / "list.json", folder, None)


def test_what_is_no_folder_is_not_found(root: Path, tmp_path: Path) -> None:
    (root / "file").touch()
    for path in (root / "file", root / "missing"):
        with pytest.raises(NotFoundError):
            add(tmp_path / "list.json", path, None)


def test_it_is_removed_by_path_or_by_label(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    for name in ("repo", str(root)):
        add(file, root, None)
        assert remove(file, name).path == root
        assert listed(file) == ()
    with pytest.raises(NotFoundError, match="execd workspace ls"):
        remove(file, "repo")


def test_a_label_that_two_have_names_neither(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    add(file, root, "same")
    add(file, root / "src", "same")
    with pytest.raises(NotFoundError, match="Several"):
        remove(file, "same")


@pytest.mark.parametrize("text", ["", "[]", '{"workspaces": [{}]}', '{"workspaces": 1}'])
def test_a_damaged_list_is_told_and_nothing_is_allowed(tmp_path: Path, text: str) -> None:
    (tmp_path / "list.json").write_text(text, encoding="ascii")
    with pytest.raises(DamagedError, match=r"list\.json"):
        listed(tmp_path / "list.json")


def test_a_folder_below_lies_in_the_workspace_and_one_beside_does_not(root: Path) -> None:
    workspace = Workspace(path=root, label="w")
    assert where(root, workspace) == "w"
    assert where(root / "src", workspace) == "w"
    assert where(root.parent, workspace) is None
    twin = root.with_name("repo2")
    twin.mkdir()
    assert where(twin, workspace) is None


def test_the_worktrees_beside_belong_to_it(root: Path) -> None:
    tree = root.with_name("repo.worktrees") / "fix"
    tree.mkdir(parents=True)
    assert where(tree, Workspace(path=root, label="w")) == "w"


def test_worktrees_that_are_a_link_do_not_belong_to_it(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    root.with_name("repo.worktrees").symlink_to(tmp_path / "elsewhere")
    assert where(root.with_name("repo.worktrees"), Workspace(path=root, label="w")) is None


@pytest.mark.clause("E8.2")
def test_a_link_that_leads_out_is_outside(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (root / "out").symlink_to(tmp_path / "secret")
    workspace = Workspace(path=root, label="w")
    assert where(root / "out", workspace) is None
    assert where(root / "src" / "..", workspace) == "w"
    assert where(root / "..", workspace) is None


def test_a_link_that_leads_in_is_inside(root: Path, tmp_path: Path) -> None:
    (tmp_path / "in").symlink_to(root / "src")
    assert where(tmp_path / "in", Workspace(path=root, label="w")) == "w"


@pytest.mark.clause("E8.2")
def test_what_is_held_is_the_folder_that_was_judged_whatever_its_name_becomes(
    root: Path, tmp_path: Path
) -> None:
    held = hold(str(root / "src"), [Workspace(path=root, label="w")])
    before = os.fstat(held.handle)
    (root / "src").rename(tmp_path / "moved")
    (root / "src").symlink_to("/")
    after = os.fstat(held.handle)
    os.close(held.handle)
    assert (before.st_dev, before.st_ino) == (after.st_dev, after.st_ino)
    assert not os.path.samestat(after, Path("/").stat())


@pytest.mark.clause("E8.2")
def test_a_workspace_that_became_a_link_holds_nothing(root: Path, tmp_path: Path) -> None:
    workspace = Workspace(path=root, label="w")
    root.rename(tmp_path / "moved")
    root.symlink_to(tmp_path / "moved")
    assert not is_in_place(workspace)
    assert where(tmp_path / "moved", workspace) is None


def test_of_two_workspaces_the_right_one_is_told(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    rows = Workspace(path=root, label="a"), Workspace(path=other, label="b")
    assert [where(root, *rows), where(other, *rows)] == ["a", "b"]


def test_no_handle_is_left_open_when_a_folder_is_not_there(root: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in (root / "missing", root / "file"):
        with pytest.raises(OSError, match=path.name):
            hold(str(path), [Workspace(path=root, label="w")])
    assert len(list(Path("/proc/self/fd").iterdir())) == before
