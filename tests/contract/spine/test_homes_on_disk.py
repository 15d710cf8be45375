"""Homes in a folder: the owner's edits are taken in, nothing is followed out, nothing is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fixtures.still_hub import StillHub
from upright.agent.homes import templates
from upright.agent.homes.disk import MANIFEST
from upright.agent.homes.mirror import Mirror, Synced
from upright.core.home import MAX_FILE_BYTES
from upright.core.mandate import Trust
from upright.store import homes
from upright.store.homes import Writing
from upright.store.unit import Unit

pytestmark = pytest.mark.clause("B17.1")
NOTE = "notes/ci.md"
DEVELOPER = templates.read("developer")  # that blocks


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "agents"
    made.mkdir()
    return made


async def synced(hub: StillHub, root: Path, agent: str = "developer") -> Synced:
    done = await Mirror(hub.units, root, {}).sync()
    return next(one for one in done if one.agent == agent)


async def stored(hub: StillHub, path: str) -> str | None:
    found = await hub.see(lambda c: homes.find(c, "developer", path))
    return found.text if found else None


async def write(hub: StillHub, path: str, text: str, trust: Trust = Trust.OPERATOR) -> None:
    def unit(u: Unit) -> None:
        homes.write(u, "developer", Writing(path=path, text=text, author="wk_1", trust=trust))

    await hub.do(unit)


async def test_a_fresh_hub_lays_its_homes_out_and_then_nothing_moves(
    hub: StillHub, root: Path
) -> None:
    await synced(hub, root)
    assert {
        path.relative_to(root / "developer").as_posix(): path.read_text()
        for path in (root / "developer").rglob("*.md")
    } == DEVELOPER
    assert not (await synced(hub, root)).is_news


async def test_what_the_owner_edits_adds_and_deletes_becomes_versions(
    hub: StillHub, root: Path
) -> None:
    await synced(hub, root)
    home = root / "developer"
    (home / "AGENTS.md").write_text("## Role\nMine.\n")
    (home / "notes").mkdir()
    (home / NOTE).write_text("Node 20.\n")
    (home / "skills/red-build/SKILL.md").unlink()
    done = await synced(hub, root)
    assert (done.taken_in, done.forgotten) == (
        ["AGENTS.md", NOTE],
        ["skills/red-build/SKILL.md"],
    )
    assert await stored(hub, "AGENTS.md") == "## Role\nMine.\n"
    assert await stored(hub, "skills/red-build/SKILL.md") is None
    one = await hub.see(lambda c: homes.find(c, "developer", NOTE))
    assert one is not None
    assert (one.author, one.trust) == ("owner", Trust.OPERATOR)


async def test_what_an_agent_noted_appears_in_the_folder_and_another_hub_has_the_same(
    hub: StillHub, root: Path, tmp_path: Path
) -> None:
    await synced(hub, root)
    await write(hub, NOTE, "Node 20.\n")
    assert (await synced(hub, root)).laid_out == [NOTE]
    await synced(hub, tmp_path / "other")
    for each in (root, tmp_path / "other"):
        assert (each / "developer" / NOTE).read_text() == "Node 20.\n"
    await hub.do(lambda u: homes.delete(u, "developer", NOTE, by="owner"))
    assert (await synced(hub, root)).removed == [NOTE]
    assert not (root / "developer" / NOTE).exists()


async def test_where_both_sides_changed_it_is_said_and_both_texts_are_kept(
    hub: StillHub, root: Path
) -> None:
    await write_both(hub, root)
    done = await synced(hub, root)
    assert (done.conflicts, done.taken_in) == ([NOTE], [NOTE])
    assert await stored(hub, NOTE) == "the owner's\n"
    assert (root / "developer/notes/ci.md.conflict-2").read_text() == "the agent's\n"
    kept = await hub.see(lambda c: homes.versions(c, "developer", NOTE))
    assert [one["text"] for one in kept] == ["the owner's\n", "the agent's\n", "both\n"]
    assert not (await synced(hub, root)).is_news


async def write_both(hub: StillHub, root: Path) -> None:
    await synced(hub, root)
    await write(hub, NOTE, "both\n")
    await synced(hub, root)
    await write(hub, NOTE, "the agent's\n")
    (root / "developer" / NOTE).write_text("the owner's\n")


async def test_an_edit_of_a_tainted_note_is_as_tainted_as_the_note(
    hub: StillHub, root: Path
) -> None:
    await synced(hub, root)
    await write(hub, NOTE, "from a stranger\n", Trust.STRANGER)
    await synced(hub, root)
    (root / "developer" / NOTE).write_text("from a stranger, read by me\n")
    await synced(hub, root)
    one = await hub.see(lambda c: homes.find(c, "developer", NOTE))
    assert one is not None
    assert (one.version, one.trust) == (2, Trust.STRANGER)


async def test_a_link_is_refused_wherever_it_points(hub: StillHub, root: Path) -> None:
    await synced(hub, root)
    secret = root.parent / "api.token"
    secret.write_text("SECRET")
    home = root / "developer"
    (home / "notes").mkdir()
    (home / NOTE).symlink_to(secret)
    done = await synced(hub, root)
    assert "a link" in done.refused[NOTE]
    assert await stored(hub, NOTE) is None


async def test_a_folder_that_is_a_link_is_neither_read_nor_written_through(
    hub: StillHub, root: Path, tmp_path: Path
) -> None:
    await synced(hub, root)
    await write(hub, NOTE, "kept\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x.md").write_text("not ours")
    (root / "developer" / "notes").symlink_to(elsewhere)
    done = await synced(hub, root)
    assert list(done.refused) == ["notes"]
    assert [path.name for path in elsewhere.iterdir()] == ["x.md"]
    assert await stored(hub, NOTE) == "kept\n"


async def test_a_home_that_is_a_link_is_left_alone(
    hub: StillHub, root: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "developer").symlink_to(elsewhere)
    done = await synced(hub, root)
    assert list(done.refused) == ["."]
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("notes/big.md", b"x" * (MAX_FILE_BYTES + 1), "most"),
        ("notes/Bad Name.md", b"x", "NAME"),
        ("notes/binary.md", b"\xff\xfe", "utf-8"),
        ("skills/x/SKILL.md", b"no front matter", "name"),
        ("run.sh", b"#!/bin/sh", "NAME"),
    ],
)
async def test_what_has_no_place_in_a_home_is_named_with_the_reason(
    hub: StillHub, root: Path, *, name: str, content: bytes, why: str
) -> None:
    await synced(hub, root)
    path = root / "developer" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    done = await synced(hub, root)
    assert why in done.refused[name]
    assert path.read_bytes() == content
    assert (await stored(hub, "AGENTS.md")) is not None


async def test_a_manifest_that_is_broken_or_lost_loses_no_text(hub: StillHub, root: Path) -> None:
    await write_both(hub, root)
    (root / "developer" / MANIFEST).write_text("[broken")
    done = await synced(hub, root)
    assert done.conflicts == [NOTE]
    known = json.loads((root / "developer" / MANIFEST).read_text())
    assert known[NOTE] == homes.digest("the owner's\n")


@pytest.mark.parametrize("deep", ["[" * 20_000, '{"a":' * 20_000])
async def test_a_manifest_that_is_nested_without_end_is_no_manifest(
    hub: StillHub, root: Path, deep: str
) -> None:
    await synced(hub, root)
    (root / "developer" / MANIFEST).write_text(deep, encoding="ascii")
    assert not (await synced(hub, root)).refused


def lay_odd(name: str) -> None:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text("x", encoding="ascii")


async def test_a_name_that_is_no_text_is_refused_and_told_as_one(hub: StillHub, root: Path) -> None:
    await synced(hub, root)
    odd = os.fsdecode(bytes(root / "developer" / "notes") + b"/\xff.md")
    lay_odd(odd)
    (told,) = (await synced(hub, root)).refused
    assert told.isascii()


async def test_a_home_that_can_not_be_written_holds_up_no_other(hub: StillHub, root: Path) -> None:
    await synced(hub, root)
    (root / "developer" / MANIFEST).unlink()
    (root / "developer" / MANIFEST).mkdir()
    assert (await synced(hub, root)).refused.keys() == {"."}
    assert not (await synced(hub, root, "router")).refused
