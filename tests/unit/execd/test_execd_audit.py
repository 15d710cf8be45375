from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from upright_execd.audit import Audit, first_break


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, delay_s: float) -> None:
        raise AssertionError(delay_s)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "audit.jsonl"
    for number in range(3):
        Audit(path, Clock()).write("command.judged", command=f"jb_{number}", rule="x")
    return path


@pytest.mark.clause("E8.7")
def test_the_chain_goes_on_over_restarts(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
    assert [row["command"] for row in rows] == ["jb_0", "jb_1", "jb_2"]
    assert rows[0]["at"] == "2026-01-02T00:00:00+00:00"
    assert first_break(path) is None
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.clause("E8.7")
@pytest.mark.parametrize(
    ("lines", "broken"),
    [
        (lambda rows: [rows[0], rows[2]], 2),
        (lambda rows: [rows[0], rows[1].replace("jb_1", "jb_7"), rows[2]], 2),
        (lambda rows: [rows[1], rows[0], rows[2]], 1),
        (lambda rows: [rows[0], "{}", rows[2]], 2),
        (lambda rows: [rows[0], "[]", rows[2]], 2),
    ],
    ids=["cut out", "changed", "swapped", "emptied", "no object"],
)
def test_what_was_done_to_a_line_is_found(path: Path, lines: object, broken: int) -> None:
    assert callable(lines)
    changed = lines(path.read_text(encoding="ascii").splitlines())
    path.write_text("\n".join(changed) + "\n", encoding="ascii")
    assert first_break(path) == broken


@pytest.mark.clause("E8.7")
def test_a_torn_line_is_told_and_does_not_swallow_the_next(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])
    Audit(path, Clock()).write("command.final", command="jb_9")
    rows = path.read_text(encoding="ascii").splitlines()
    assert json.loads(rows[3])["command"] == "jb_9"
    assert first_break(path) == 3


@pytest.mark.clause("E8.7")
def test_two_that_write_in_turn_keep_one_chain(path: Path) -> None:
    daemon, verb = Audit(path, Clock()), Audit(path, Clock())
    for number in range(3):
        daemon.write("command.final", command=f"jb_{number}")
        verb.write("pairing.made", device=f"dv_{number}")
    assert first_break(path) is None
    assert len(path.read_text(encoding="ascii").splitlines()) == 9


def test_no_log_has_no_break(tmp_path: Path) -> None:
    assert first_break(tmp_path / "none") is None
