"""Plain values: strict by the annotations, generous with what is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pytest

from upright_wire.errors import FrameError
from upright_wire.plain import MAX_INT, from_plain, to_plain


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    n: int = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    text: str = ""
    number: int = 0
    flag: bool = False
    raw: bytes = b""
    colour: Colour = Colour.RED
    names: tuple[str, ...] = ()
    pair: tuple[str, int] = ("a", 1)
    inner: Inner = Inner()
    maybe: Inner | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needy:
    text: str


def test_a_value_survives_the_way_there_and_back() -> None:
    value = Outer(
        text="é", raw=b"\x00\xff", names=("a", "b"), pair=("z", 3), maybe=Inner(n=1), flag=True
    )
    assert from_plain(Outer, to_plain(value)) == value


def test_none_is_left_out_and_defaults_fill_what_is_missing() -> None:
    plain = to_plain(Outer())
    assert isinstance(plain, dict)
    assert "maybe" not in plain
    assert from_plain(Outer, {}) == Outer()
    assert from_plain(Outer, {"maybe": None, "text": None}) == Outer()


@pytest.mark.clause("E3.2")
def test_unknown_fields_are_ignored() -> None:
    assert from_plain(Outer, {"tomorrow": [{}], "inner": {"n": 2, "new": 1}}).inner.n == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", 1),
        ("text", "\ud800"),
        ("number", "1"),
        ("number", True),
        ("number", MAX_INT + 1),
        ("number", -MAX_INT - 1),
        ("flag", 1),
        ("raw", "0"),
        ("raw", "FF"),
        ("raw", "zz"),
        ("raw", 1),
        ("colour", "blue"),
        ("colour", []),
        ("names", "ab"),
        ("names", [1]),
        ("pair", ["a"]),
        ("pair", ["a", 1, 2]),
        ("inner", []),
        ("maybe", 3),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused_with_its_place(field: str, value: object) -> None:
    with pytest.raises(FrameError, match=f"Outer.{field}"):
        from_plain(Outer, {field: value})


@pytest.mark.parametrize("value", [{}, {"text": None}, [], "x", None], ids=str)
def test_what_must_be_there_is_asked_for(value: object) -> None:
    with pytest.raises(FrameError):
        from_plain(Needy, value)


@pytest.mark.parametrize("value", [1.5, {"a": 1}, [1], object()], ids=type)
def test_what_is_no_plain_value_is_a_mistake_of_ours(value: object) -> None:
    with pytest.raises(TypeError):
        to_plain(value)


def test_what_is_no_dataclass_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError):
        from_plain(int, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    x: list[int]


def test_an_annotation_that_is_not_known_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError):
        from_plain(Odd, {"x": [1]})
