from __future__ import annotations

from pathlib import Path

import pytest

from upright_execd.shim.records import Reserved, claim, parse, render, write

PAIRS = [("pid", "7"), ("survivor", "8 a=b\\n"), ("survivor", "9 x")]


def test_pairs_come_back_in_order_and_with_repeats() -> None:
    assert parse(render(PAIRS)) == PAIRS


@pytest.mark.clause("E5.1")
def test_every_torn_beginning_is_recognised() -> None:
    whole = render(PAIRS)
    assert [parse(whole[:cut]) for cut in range(len(whole))] == [None] * len(whole)


@pytest.mark.parametrize("content", [b"", b"\0" * 40, b"\xff\xfe\n", b"complete=2\n"])
def test_what_is_no_record_is_none(content: bytes) -> None:
    assert parse(content) is None


@pytest.mark.clause("E5.2")
def test_only_the_first_claims_and_nothing_is_left_lying_about(tmp_path: Path) -> None:
    assert claim(str(tmp_path), "started")
    assert not claim(str(tmp_path), "started")
    write(str(tmp_path), "running", PAIRS)
    assert parse((tmp_path / "running").read_bytes()) == PAIRS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["running", "started"]


def test_a_reserved_record_is_not_there_before_it_is_whole(tmp_path: Path) -> None:
    reserved = Reserved(str(tmp_path), "exit")
    assert not (tmp_path / "exit").exists()
    reserved.write(PAIRS)
    assert parse((tmp_path / "exit").read_bytes()) == PAIRS
    assert [path.name for path in tmp_path.iterdir()] == ["exit"]
