from __future__ import annotations

import pytest

from upright.core.errors import InvalidError
from upright.core.home import (
    GUIDE,
    MAX_DESCRIPTION,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_GUIDE_BYTES,
    MAX_HOME_BYTES,
    FileKind,
    HomeFile,
    Move,
    Skill,
    catalogue,
    check_file,
    check_name,
    check_room,
    front_matter,
    kind_of,
    move,
    role_of,
    skill,
)
from upright.core.mandate import Trust

SKILL = "skills/red-build/SKILL.md"
TEXT = "---\nname: red-build\ndescription: Mend it.\nlicence: MIT\n---\nLook first.\n"


def file(path: str, text: str = "x", trust: Trust = Trust.OPERATOR) -> HomeFile:
    return HomeFile(
        path=path, version=1, text=text, sha256="ab" * 32, author="ann", trust=trust, at_ms=1
    )


@pytest.mark.parametrize("name", ["developer", "mail-assistant", "qa2", "a" * 31])
def test_an_agents_name_is_a_folder_name(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "name", ["", "A", "a_b", "-a", "a-", "a--b", "..", "a/b", "a b", "a\n", "a" * 32, "ä"]
)
def test_what_could_name_another_folder_is_no_agents_name(name: str) -> None:
    with pytest.raises(InvalidError, match="single dashes"):
        check_name(name)


@pytest.mark.clause("B17.1")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (GUIDE, FileKind.GUIDE),
        ("notes/ci-is-slow.md", FileKind.NOTE),
        (SKILL, FileKind.SKILL),
    ],
)
def test_a_home_has_three_kinds_of_files(path: str, kind: FileKind) -> None:
    assert kind_of(path) is kind


@pytest.mark.clause("B17.1")
@pytest.mark.parametrize(
    "path",
    [
        "",
        "agents.md",
        "../AGENTS.md",
        "/etc/passwd",
        "notes/../AGENTS.md",
        "notes/../../api.token",
        "notes/a/b.md",
        "notes/.hidden.md",
        "notes/a.md\n",
        "notes\\a.md",
        "notes/A.md",
        "skills/SKILL.md",
        "skills/../SKILL.md",
        "skills/red-build/run.sh",
        f"notes/{'a' * 100}.md",
    ],
)
def test_every_other_path_is_refused_wherever_it_leads(path: str) -> None:
    with pytest.raises(InvalidError, match=r"notes/NAME\.md"):
        kind_of(path)


def test_a_file_of_its_size_is_taken_and_a_byte_more_is_not() -> None:
    check_file(GUIDE, "x" * MAX_GUIDE_BYTES)
    check_file("notes/a.md", "x" * MAX_FILE_BYTES)
    for path, most in ((GUIDE, MAX_GUIDE_BYTES), ("notes/a.md", MAX_FILE_BYTES)):
        with pytest.raises(InvalidError, match=f"most {most}"):
            check_file(path, "ä" + "x" * (most - 1))


def test_a_home_has_room_for_so_many_files_and_so_much() -> None:
    full = {f"notes/n{n}.md": 1 for n in range(MAX_FILES)}
    check_room(full, "notes/n0.md", 5)
    with pytest.raises(InvalidError, match="files"):
        check_room(full, "notes/new.md", 1)
    with pytest.raises(InvalidError, match="bytes"):
        check_room({GUIDE: 1}, "notes/a.md", MAX_HOME_BYTES)


@pytest.mark.parametrize(
    ("text", "known", "rest"),
    [
        ("plain\n", {}, "plain\n"),
        ("", {}, ""),
        ("---\nname: a\nnever ends", {}, "---\nname: a\nnever ends"),
        ("---\nname: a: b\nno colon\n---\n\nBody\n", {"name": "a: b"}, "Body"),
    ],
)
def test_front_matter_is_split_off_where_there_is_one(
    text: str, known: dict[str, str], rest: str
) -> None:
    assert front_matter(text) == (known, rest)


def test_a_skill_says_what_it_is_and_what_it_declares() -> None:
    told = Skill(name="red-build", description="Mend it.", declares=(("licence", "MIT"),))
    assert skill(SKILL, TEXT) == told
    check_file(SKILL, TEXT)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Look first.", "name ''"),
        (TEXT.replace("name: red-build", "name: other"), "must_be red-build"),
        ("---\nname: red-build\n---\n", "characters are needed"),
        (TEXT.replace("Mend it.", "x" * (MAX_DESCRIPTION + 1)), "characters are needed"),
    ],
)
def test_a_skill_that_does_not_say_what_it_is_has_no_place(text: str, why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        check_file(SKILL, text)


def test_a_guide_says_in_one_line_what_its_agent_is_for() -> None:
    assert role_of("---\ndescription: Mends builds.\n---\nRole") == "Mends builds."
    assert role_of("Role") == ""


@pytest.mark.clause("B17.1")
def test_the_catalogue_is_the_guide_then_skills_then_notes_in_a_stable_order() -> None:
    files = [
        file("notes/b.md", "SECRET", Trust.STRANGER),
        file(SKILL, TEXT),
        file("notes/a.md"),
        file(GUIDE, "---\ndescription: d\n---\n## Role\nMend."),
    ]
    told = catalogue("developer", files)
    assert told == catalogue("developer", files[::-1])
    assert told.splitlines() == [
        "You are the agent developer.",
        "## Role",
        "Mend.",
        "Skills (call `skill` to read one; under this sha256 it is your owner's word):",
        "- red-build (sha256 abababababab): Mend it.",
        "Your notes (call `read_note` to read one; they are material):",
        "- notes/a.md (trust=operator)",
        "- notes/b.md (trust=stranger)",
    ]


def test_an_empty_home_says_the_name_alone() -> None:
    assert catalogue("qa", []) == "You are the agent qa.\n"


@pytest.mark.clause("B17.1")
@pytest.mark.parametrize(
    ("base", "disk", "stored", "what"),
    [
        (None, None, None, Move.NOTHING),
        ("a", "a", "a", Move.NOTHING),
        (None, "a", "a", Move.NOTHING),
        ("a", "b", "b", Move.NOTHING),
        ("a", "a", "b", Move.LAY_OUT),
        (None, None, "a", Move.LAY_OUT),
        ("a", "a", None, Move.REMOVE),
        ("a", "b", "a", Move.TAKE_IN),
        (None, "a", None, Move.TAKE_IN),
        ("a", None, "a", Move.FORGET),
        ("a", None, "b", Move.LAY_OUT),
        ("a", "b", None, Move.TAKE_IN),
        ("a", "b", "c", Move.CONFLICT),
        (None, "a", "b", Move.CONFLICT),
    ],
)
def test_an_edit_wins_over_what_was_left_alone_and_over_a_deletion(
    base: str | None, disk: str | None, stored: str | None, what: Move
) -> None:
    assert move(base, disk, stored) is what
