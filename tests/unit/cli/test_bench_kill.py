"""The kill bench's own parts: which stop a unit is, who dies next, and what a report says."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Final

import pytest

from upright.cli.bench import strays
from upright.cli.bench.doom import Doom, Fate, Files, Mark, marks, write_dooms
from upright.cli.bench.draw import Dice, Draw, Tally
from upright.cli.bench.load import acknowledged
from upright.cli.bench.report import Report
from upright.cli.bench.stops import (
    BY_UNIT,
    INTAKE,
    STEPS,
    Place,
    Side,
    Victim,
    names_of,
    places,
    stop_of,
)
from upright.cli.bench.verdict import Findings
from upright.store.trail import Trace

ENDS_S: Final = 10
HUB: Final = Path(__file__).parents[3] / "hub" / "upright"
QUEUED: Final = Place(Victim.EXECD, "command.queued", Side.AFTER)


# ------------------------------------------------------------------ which stop it is
@pytest.mark.parametrize(
    ("name", "told", "result", "stop"),
    [
        (
            "TurnRunner._do.<locals>.<lambda>",
            {"turn.took": {}, "work.moved": {}},
            None,
            "turn.took",
        ),
        ("x", {"tool.ran": {}, "command.queued": {}}, None, "command.queued"),
        ("x", {"tool.ran": {}, "work.moved": {"to": "completed"}}, None, "work.completed"),
        ("x", {"command.ended": {}, "intake.accepted": {}}, None, "command.ended"),
        ("Intake._store.x", {"intake.accepted": {"disposition": "held"}}, [1], "intake.accepted"),
        ("Intake._store.x", {"intake.accepted": {"disposition": "woke"}}, [1], "intake.woke"),
        ("Intake._store.x", {}, [1], "intake.duplicate"),
        ("EmbeddedEngine._claim.x", {}, [1], "engine.claim"),
        ("EmbeddedEngine._claim.x", {}, [], None),
        ("LinkEnd._push_one.x", {}, False, None),
        ("LinkEnd.on_output.x", {}, None, "output.stored"),
        ("EmbeddedEngine._renew.x", {}, [], "engine.renew"),
        ("somebody.else", {}, None, None),
    ],
)
def test_a_unit_is_known_by_its_events_else_by_its_name(
    name: str, told: dict[str, dict[str, object]], result: object, stop: str | None
) -> None:
    traces = [Trace(stop=event, data=data) for event, data in told.items()]
    assert stop_of(["Units.write.<locals>.<lambda>", name], traces, result) == stop


def test_a_unit_is_named_through_the_closures_that_hand_it_in() -> None:
    def given() -> None: ...

    def wrapped(unit: Callable[[], None]) -> Callable[[], None]:
        def handed_in() -> None:
            unit()

        return handed_in

    names = [name.rpartition(".")[2] for name in names_of(wrapped(wrapped(given)))]
    assert names == ["handed_in", "handed_in", "given"]


@pytest.mark.parametrize("unit", BY_UNIT)
def test_a_unit_that_has_no_event_is_where_its_name_says(unit: str) -> None:
    *classes, function = unit.rstrip(".").split(".")
    texts = [path.read_text(encoding="utf-8") for path in HUB.rglob("*.py")]
    words = [*(f"class {name}" for name in classes), f"def {function}("]
    assert any(all(word in text for word in words) for text in texts)


def test_each_stop_has_a_place_and_each_place_a_stop() -> None:
    both = places("both")
    assert {place.stop for place in both} == set(STEPS)
    assert len(set(both)) == len(both) == len(places("hub")) + len(places("execd"))


# ------------------------------------------------------------------ who dies next
@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(folder=tmp_path)


@pytest.fixture
def victim(files: Files) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for the daemon."""
    words = (sys.executable, "-c", "import signal; signal.pause()")
    with subprocess.Popen(words, cwd=files.folder) as process:
        files.execd.write_text(str(process.pid), encoding="ascii")
        yield process
        process.kill()


def passes(fate: Fate, place: Place) -> None:
    fate.passes(place.stop, place.side, inside_turn=True)


def test_a_doom_kills_at_its_moment_and_leaves_a_mark(
    files: Files, victim: subprocess.Popen[bytes]
) -> None:
    write_dooms(files, [Doom(place=QUEUED, skip=1)])
    fate = Fate(files)
    fate.passes("command.queued", Side.BEFORE, inside_turn=False)
    passes(fate, QUEUED)
    assert marks(files) == []
    passes(fate, QUEUED)
    assert victim.wait(ENDS_S) == -signal.SIGKILL
    assert marks(files) == [Mark(place=QUEUED, inside_turn=True, pid=victim.pid)]


def test_a_victim_dies_once_and_another_doom_waits_for_the_next_one(
    files: Files, victim: subprocess.Popen[bytes]
) -> None:
    write_dooms(files, [Doom(place=QUEUED), Doom(place=QUEUED)])
    fate = Fate(files)
    for _ in range(3):
        passes(fate, QUEUED)
    assert len(marks(files)) == 1


def test_dooms_that_are_written_anew_take_the_place_of_the_old(
    files: Files, victim: subprocess.Popen[bytes]
) -> None:
    write_dooms(files, [Doom(place=QUEUED, skip=9)])
    fate = Fate(files)
    passes(fate, QUEUED)
    write_dooms(files, [])
    for _ in range(20):
        passes(fate, QUEUED)
    assert marks(files) == []
    assert victim.poll() is None


def tally(wanted: int, target: str = "both") -> Tally:
    return Tally(wanted=wanted, places=places(target))


def test_dice_of_one_seed_fall_alike() -> None:
    thrown = [[Dice(seed).below(1000) for _ in range(2)] for seed in (5, 5, 6)]
    assert thrown[0] == thrown[1] != thrown[2]


def test_places_that_were_met_least_come_first() -> None:
    counts = tally(10_000)
    draw, dice = Draw(counts, Dice(1)), Dice(2)
    for _ in range(10 * len(counts.places)):
        drawn = draw.next(Victim.HUB if dice.below(2) else Victim.EXECD)
        place = drawn.outside or drawn.dooms[0].place
        counts.add(Mark(place=place, inside_turn=False, pid=1))
    assert counts.missed() == []
    assert counts.between > counts.landed / 20


def test_a_side_that_was_never_met_comes_first_however_often_the_other_was() -> None:
    never = Place(Victim.HUB, "work.completed", Side.AFTER)
    counts = met(10_000, but=never)
    counts.met[Place(Victim.HUB, "work.completed", Side.BEFORE)] = 40
    drawn = [Draw(counts, Dice(seed)).next(Victim.HUB, is_late=True) for seed in range(20)]
    others = [one for one in drawn if one.dooms[0].place.stop not in INTAKE]
    assert others
    assert {one.dooms[0].place for one in others} == {never}


def test_what_was_never_met_may_still_come_when_a_story_has_had_its_kills() -> None:
    never = Place(Victim.HUB, "work.completed", Side.AFTER)
    draw = Draw(met(10_000, but=never), Dice(1))
    assert [doom.place for doom in draw.unmet(Victim.HUB).dooms] == [never]
    assert draw.unmet(Victim.EXECD).dooms == ()


def test_nothing_is_drawn_once_all_have_landed() -> None:
    counts = tally(1)
    counts.add(Mark(place=QUEUED, inside_turn=False, pid=1))
    drawn = Draw(counts, Dice(1)).next(Victim.EXECD)
    assert (counts.left, drawn.dooms, drawn.outside) == (0, (), None)


@pytest.mark.parametrize(("target", "mode"), [("hub", Victim.HUB), ("execd", Victim.EXECD)])
def test_a_target_that_was_named_is_the_only_one(target: str, mode: Victim) -> None:
    draw = Draw(tally(9, target), Dice(1))
    assert {draw.mode() for _ in range(50)} == {mode}


# ------------------------------------------------------------------ what is said of it
def report(counts: Tally, findings: Findings | None = None) -> Report:
    found = findings or Findings()
    return Report(seed=1, seconds=2.0, stories=3, tally=counts, findings=found)


def met(wanted: int, *, but: Place | None = None) -> Tally:
    counts = tally(wanted)
    counts.met = Counter({place: 5 for place in counts.places if place != but})
    return counts


def test_a_run_in_which_every_place_was_met_and_nothing_found_is_no_failure() -> None:
    assert report(met(200)).failures() == []


def test_a_place_that_was_never_met_is_a_failure_of_a_long_run() -> None:
    told = report(met(200, but=QUEUED))
    assert told.failures() == ["no kill landed at execd: command.queued after"]
    assert told.as_json()["missed"] == ["execd: command.queued after"]


def test_a_short_run_says_that_it_is_too_short_to_meet_every_place() -> None:
    told = report(met(30, but=QUEUED))
    assert told.failures() == []
    assert "too few kills to meet every place: 1 were not met" in list(told.lines())


def test_kills_that_did_not_land_are_a_failure() -> None:
    assert "30 kills did not land" in report(tally(30)).failures()


@pytest.mark.parametrize("kind", ["lost", "doubled", "stuck"])
def test_each_finding_is_counted_and_is_a_failure(kind: str) -> None:
    findings = Findings()
    getattr(findings, kind).append("it is so")
    told = report(met(200), findings)
    assert told.as_json()[kind] == 1
    assert told.failures() == ["it is so"]
    assert "FAILED: it is so" in list(told.lines())


def test_kills_between_receipt_and_answer_are_those_at_intake() -> None:
    assert report(met(200)).as_json()["between_receipt_and_answer"] == 5 * 2 * len(INTAKE)


def test_a_torn_line_of_the_clients_log_was_never_acknowledged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"70000001\n70000002\n7000")
    assert acknowledged(log) == [70000001, 70000002]


@pytest.mark.skipif(sys.platform != "linux", reason="platform: only Linux shows other processes")
def test_whatever_is_at_work_in_the_folder_is_ended(
    files: Files, victim: subprocess.Popen[bytes]
) -> None:
    (said,) = strays.end(files.folder)
    assert victim.wait(ENDS_S) == -signal.SIGKILL
    assert str(victim.pid) in said
    assert strays.strays(files.folder) == {}


def _qualified(code: CodeType) -> Iterator[str]:
    """Yield the qualified name of every function in a compiled file."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner.co_qualname
            yield from _qualified(inner)


def test_each_unit_that_is_told_by_its_name_is_there() -> None:
    """A function that was renamed would take its stop out of the harness, and nobody would see."""
    files = [path for path in HUB.rglob("*.py") if "versions" not in path.parts]
    there = {
        name
        for path in files
        for name in _qualified(compile(path.read_text(encoding="utf-8"), str(path), "exec"))
    }
    assert [unit for unit in BY_UNIT if not any(name.startswith(unit) for name in there)] == []
