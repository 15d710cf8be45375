from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from docsgen import clauses, errors, features, field_cases, frames, machines, mutants
from upright_wire import codec

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# How many points each section of the design has.
POINTS: Final = """
    B1 6 B2 6 B3 4 B4 4 B5 5 B6 11 B7 6 B8 7 B9 6 B10 5 B11 12 B12 6 B13 4 B14 6 B15 4 B16 3 B17 5
    B18 2 B19 2 E1 6 E2 5 E3 3 E4 6 E5 5 E6 3 E7 12 E8 7 E9 4 E10 4
"""


def test_every_generated_page_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "-P", "--check", *map(str, PAGES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=25,
    )
    assert done.returncode == 0, f"run `make format`:\n{done.stdout}{done.stderr}"


def test_every_link_between_pages_leads_somewhere() -> None:
    missing = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not missing


# ------------------------------------------------------------------ clauses
def test_every_marker_names_an_existing_clause() -> None:
    known = {clause for section in clauses.sections() for clause in section.clauses}
    assert not [use for use in clauses.uses() if use.clause not in known]


def test_every_section_has_all_its_points_in_order() -> None:
    words = POINTS.split()
    wanted = {
        name: [f"{name}.{point}" for point in range(1, int(points) + 1)]
        for name, points in zip(words[::2], words[1::2], strict=True)
    }
    assert {section.name: list(section.clauses) for section in clauses.sections()} == wanted


def test_every_clause_has_a_short_line_of_its_own() -> None:
    lines = [text for section in clauses.sections() for text in section.clauses.values()]
    assert len(set(lines)) == len(lines)
    assert not [line for line in lines if not line.endswith(".") or len(line) > 110 or "|" in line]


def uses(source: str) -> set[tuple[str, str]]:
    found = clauses.marked(ast.parse(source).body, "t.py", ())
    return {(use.clause, use.test) for use in found}


def test_markers_of_functions_parameters_and_several_ids_are_found() -> None:
    source = """
@pytest.mark.clause("B1.1", "B1.2")
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.clause("B1.3"))])
async def test_a(): ...
@pytest.mark.clause("B9.9")
def helper(): ...
@pytest.mark.other("B8.8")
def test_b(): ...
"""
    assert uses(source) == {
        ("B1.1", "t.py::test_a"),
        ("B1.2", "t.py::test_a"),
        ("B1.3", "t.py::test_a"),
    }


def test_markers_of_a_module_and_of_a_class_count_for_what_is_inside() -> None:
    source = """
pytestmark = [pytest.mark.clause("B1.1")]
@pytest.mark.clause("B1.2")
class TestX:
    def test_a(self): ...
    def other(self): ...
@pytest.mark.clause("B1.3")
class Machine(RuleBasedStateMachine):
    def step(self): ...
"""
    assert uses(source) == {
        ("B1.1", "t.py::TestX::test_a"),
        ("B1.2", "t.py::TestX::test_a"),
        ("B1.1", "t.py::Machine"),
        ("B1.3", "t.py::Machine"),
    }


def test_markers_are_read_from_files_without_importing_them(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "unit"
    folder.mkdir(parents=True)
    source = 'raise SystemExit\n@pytest.mark.clause("B1.1")\ndef test_a(): ...\n'
    (folder / "test_x.py").write_text(source, encoding="utf-8")
    (folder / "helper.py").write_text(source, encoding="utf-8")
    assert clauses.uses(tmp_path / "tests") == (
        clauses.Use(clause="B1.1", test="tests/unit/test_x.py::test_a"),
    )


def test_a_clause_without_tests_shows_a_dash_and_many_are_counted() -> None:
    assert clauses.cell([]) == "\N{EN DASH}"
    assert clauses.cell(["tests/a/test_x.py::test_a"]) == (
        "[test_x::test_a](../../tests/a/test_x.py)"
    )
    many = clauses.cell([f"t.py::test_{n}" for n in range(20)])
    assert many.count("<br>") == clauses.SHOWN
    assert many.endswith("and 12 more")


# ------------------------------------------------------------------ planted bugs
@pytest.mark.parametrize("section", [*mutants.CORE, *mutants.DEVICES])
def test_every_clause_of_these_sections_has_a_test_and_a_planted_bug_that_its_test_finds(
    section: str,
) -> None:
    listed, used = mutants.mutants(), clauses.uses()
    found = next(one for one in clauses.sections() if one.name == section)
    tested = {use.clause for use in used}
    assert [clause for clause in found.clauses if clause not in tested] == []
    assert [one for one in found.clauses if not mutants.planted(one, listed, used)] == []


def test_every_planted_bug_has_a_name_of_its_own_and_stands_where_its_list_says() -> None:
    listed = mutants.mutants()
    assert len({mutant.name for mutant in listed}) == len(listed)
    for mutant in listed:
        text = (ROOT / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.line) == 1, f"{mutant.file} has changed: plant {mutant.name} anew"
        assert all((ROOT / test.partition("::")[0]).is_file() for test in mutant.tests), mutant.name


def test_every_clause_that_a_planted_bug_names_exists() -> None:
    known = {clause for section in clauses.sections() for clause in section.clauses}
    assert not [m.name for m in mutants.mutants() if not known.issuperset(m.clauses)]


# ------------------------------------------------------------------ cases from the field
def test_every_case_from_the_field_has_a_named_test_or_belongs_to_a_later_issue() -> None:
    marked = field_cases.tests()
    listed = field_cases.cases()
    assert [case.id for case in listed if case.id not in marked and not case.later] == []
    assert set(marked) <= {case.id for case in listed}


# ------------------------------------------------------------------ features of connectors
def test_every_feature_that_a_test_shows_is_listed_once() -> None:
    listed = [one.id for kind in features.kinds() for one in kind.features]
    assert set(features.tests()) <= set(listed)
    assert len(set(listed)) == len(listed)


def test_a_feature_without_a_test_is_visibly_not_there() -> None:
    shown = features.tests()
    page = (ROOT / "docs/reference/connectors.md").read_text(encoding="utf-8")
    for one in (one for kind in features.kinds() for one in kind.features):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{one.id}` |")]
        assert row.endswith("| *not yet* |") is (one.id not in shown)


# ------------------------------------------------------------------ machines and errors
def test_every_table_of_the_core_and_the_wires_command_are_drawn_on_the_page() -> None:
    tables = {
        path.stem
        for path in (ROOT / "hub/upright/core").glob("*.py")
        if "\nTRANSITIONS: Final" in path.read_text(encoding="utf-8")
    }
    page = (ROOT / "docs/reference/machines.md").read_text(encoding="utf-8")
    assert tables | {"command"} == set(machines.MACHINES)
    assert set(re.findall(r'machines\.drawing\("(\w+)"\)', page)) == set(machines.MACHINES)


class Lamp(StrEnum):
    DARK = "dark"
    LIT = "lit"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Pressed:
    pass


@dataclass(frozen=True, slots=True)
class Held:
    pass


@dataclass(frozen=True, slots=True)
class Dropped:
    pass


LAMP: Final = machines.Machine(
    states=Lamp,
    table={
        (Lamp.DARK, Pressed): Lamp.LIT,
        (Lamp.DARK, Held): Lamp.LIT,
        (Lamp.LIT, Pressed): Lamp.DARK,
        (Lamp.LIT, Held): Lamp.LIT,
        (Lamp.LIT, Dropped): Lamp.BROKEN,
    },
)


def test_a_diagram_shows_every_move_where_it_begins_and_where_it_ends() -> None:
    assert LAMP.diagram().split("\n") == [
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> dark",
        "    dark --> lit: Pressed, Held",
        "    lit --> dark: Pressed",
        "    lit --> lit: Held",
        "    lit --> broken: Dropped",
        "    broken --> [*]",
        "```",
    ]


def test_the_count_says_how_many_pairs_are_moves() -> None:
    assert LAMP.count().startswith("5 of 9 pairs are moves")


@pytest.mark.parametrize("module", errors.MODULES, ids=lambda module: module.__name__)
def test_every_error_of_a_listed_module_has_a_sentence_and_a_code_of_its_own(
    module: ModuleType,
) -> None:
    found = errors.of(module)
    codes = [vars(kind)["code"] for kind in found]
    assert found
    assert all(errors.sentence(kind).endswith(".") for kind in found)
    assert len(set(codes)) == len(codes)


def test_every_module_whose_errors_have_codes_is_listed() -> None:
    with_codes = {
        path
        for shelf in ("hub/upright", "execd")
        for path in (ROOT / shelf).rglob("*.py")
        if re.search(r'^    code = "[a-z_.]+"$', path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    # the scripted model server answers with the codes of the service that it plays
    played = ROOT / "hub/upright/llm/scripted/errors.py"
    assert with_codes - {played} == {Path(str(module.__file__)) for module in errors.MODULES}


# ------------------------------------------------------------------ frames
def test_every_message_that_the_codec_reads_has_its_place_on_the_page() -> None:
    page = (ROOT / "docs/reference/frames.md").read_text(encoding="utf-8")
    assert {kind.TYPE for kind in frames.messages()} == set(codec.TYPES)
    assert set(re.findall(r"^#### `(\w+)`$", page, re.MULTILINE)) == set(codec.TYPES)


def test_every_value_that_a_message_holds_has_its_place_on_the_page() -> None:
    page = (ROOT / "docs/reference/frames.md").read_text(encoding="utf-8")
    named = {kind.__name__ for kind in (*frames.records(), *frames.enums())}
    links = set(re.findall(r"\(#(\w+)\)", page))
    assert links == {name.lower() for name in named}
    assert named <= set(re.findall(r"^### (\w+)$", page, re.MULTILINE))


def test_what_stands_on_the_wire_is_said_in_words() -> None:
    assert frames.written(tuple[str, ...]) == "list of text"
    assert frames.written(tuple[int, int]) == "[whole number, whole number]"
    assert frames.written(bytes | None) == "hexadecimal"
