"""Spilled payloads: whole files, named by what is in them, swept when no row names them."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from upright.store.spill import Spill, digest

pytestmark = pytest.mark.may_block
RAW = b"\x00\xff" * 4000


@pytest.fixture
def spill(tmp_path: Path) -> Spill:
    return Spill(tmp_path / "spill")


@pytest.mark.clause("B1.2")
def test_what_is_kept_is_read_back_byte_for_byte_and_for_its_owner_alone(spill: Spill) -> None:
    named = spill.keep(RAW)
    assert (named, spill.read(named)) == (digest(RAW), RAW)
    assert stat.S_IMODE(spill.path(named).stat().st_mode) == 0o600


def test_the_same_bytes_are_kept_once(spill: Spill) -> None:
    first = spill.path(spill.keep(RAW)).stat()
    assert spill.path(spill.keep(RAW)).stat().st_ino == first.st_ino
    assert list(spill.names()) == [digest(RAW)]


def test_a_file_that_was_changed_is_not_given_out(spill: Spill) -> None:
    named = spill.keep(RAW)
    spill.path(named).write_bytes(b"something else")
    with pytest.raises(ValueError, match="other bytes"):
        spill.read(named)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        "",
        f"{'a' * 64}/../x",
        f"{'a' * 64}\n",
        f"{'a' * 63}\0",
        "A" * 64,
        "%2e%2e%2f",
    ],
)
def test_a_name_is_a_digest_and_leads_nowhere_else(spill: Spill, name: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(name) + "$"):
        spill.path(name)


def test_a_link_in_the_folder_leads_no_bytes_out_and_none_in(spill: Spill, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"somebody's")
    path = spill.path(digest(RAW))
    path.parent.mkdir(parents=True)
    path.with_suffix(".new").symlink_to(other)
    assert spill.read(spill.keep(RAW)) == RAW
    assert (other.read_bytes(), path.is_symlink()) == (b"somebody's", False)
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(ValueError, match="other bytes"):
        spill.read(digest(RAW))
    assert spill.sweep(set()) == 1
    assert other.read_bytes() == b"somebody's"


def test_a_start_removes_what_no_row_names_and_what_was_half_written(spill: Spill) -> None:
    kept, loose = spill.keep(RAW), spill.keep(b"loose")
    half = spill.path(kept).with_suffix(".new")
    half.write_bytes(b"half")
    assert spill.sweep({kept}) == 2
    assert list(spill.names()) == [kept]
    assert not os.path.lexists(half)
    assert loose not in set(spill.names())


def test_dropping_what_is_gone_already_is_no_error(spill: Spill) -> None:
    named = spill.keep(RAW)
    spill.drop([named, named])
    assert list(spill.names()) == []
