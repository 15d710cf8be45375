"""Editing the configuration: one source changes, comments and everything else stay."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.settings.edit import Value, add_source, set_key, written
from upright.settings.errors import SettingsError

TEXT = """\
# What it is for.
[hub]
port = 1234  # ours

[sources.github]   # the team's
connector = "github"
secret = "keyring:a"  # renewed in May
# enabled = "no"

[sources.other]
connector = "mail"
"""


def test_a_source_is_added_at_the_end_and_the_rest_stays_word_for_word() -> None:
    made = add_source(TEXT, "room-1", {"connector": "x", "list": ["a", "b"]}, origin="f")
    assert made == f'{TEXT}\n[sources.room-1]\nconnector = "x"\nlist = ["a", "b"]\n'


@pytest.mark.parametrize("text", ["", "# nothing yet", "[hub]\nport = 1"])
def test_the_first_source_is_added_to_any_text(text: str) -> None:
    made = add_source(text, "a", {"connector": "x"}, origin="f")
    assert made.startswith(text)
    assert tomllib.loads(made)["sources"] == {"a": {"connector": "x"}}


def test_a_key_is_set_where_it_stands_and_its_comment_stays() -> None:
    made = set_key(TEXT, "github", "secret", value="keyring:b", origin="f")
    assert made == TEXT.replace('"keyring:a"', '"keyring:b"')


def test_a_key_that_is_not_there_comes_below_the_heading() -> None:
    heading = "[sources.github]   # the team's\n"
    made = set_key(TEXT, "github", "enabled", value=False, origin="f")
    assert made == TEXT.replace(heading, f"{heading}enabled = false\n")
    assert set_key(made, "github", "enabled", value=True, origin="f").count("enabled = true") == 1


@pytest.mark.parametrize("heading", ["[sources.a]", "[ sources . a ]", '[sources."a"]'])
def test_a_heading_may_be_written_in_any_way_and_end_the_file(heading: str) -> None:
    made = set_key(f'{heading}\nconnector = "x"', "a", "enabled", value=False, origin="f")
    assert tomllib.loads(made)["sources"]["a"] == {"connector": "x", "enabled": False}
    assert tomllib.loads(set_key(heading, "a", "enabled", value=False, origin="f"))


@pytest.mark.parametrize(
    "text",
    [
        '[sources]\na = { connector = "x" }\n',
        'sources.a.connector = "x"\n',
        '[sources.a]\nconnector = "x"\nenabled = [\n  true,\n]\n',
        '[hub]\nname = """\n[sources.a]\n"""\n[sources]\na.connector = "x"\n',
    ],
)
def test_what_cannot_be_changed_line_by_line_is_left_to_a_person(text: str) -> None:
    with pytest.raises(SettingsError, match="edit the file by hand"):
        set_key(text, "a", "enabled", value=False, origin="f")


def test_a_name_that_is_taken_wrong_or_unknown_is_said() -> None:
    with pytest.raises(SettingsError, match="of this name already"):
        add_source(TEXT, "github", {"connector": "x"}, origin="f")
    with pytest.raises(SettingsError, match="letters, digits"):
        add_source(TEXT, "a b", {"connector": "x"}, origin="f")
    with pytest.raises(SettingsError, match='did you mean "github"'):
        set_key(TEXT, "githbu", "enabled", value=False, origin="f")
    with pytest.raises(SettingsError, match="no TOML"):
        set_key("[", "a", "enabled", value=False, origin="f")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: st.SearchStrategy[Value] = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_whatever_is_written_is_read_back(value: Value) -> None:
    assert tomllib.loads(f"value = {written(value)}")["value"] == value
