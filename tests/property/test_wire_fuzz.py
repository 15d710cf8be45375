"""The codec under fire: whatever comes in, only its own typed errors come out, in little memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upright_wire import codec
from upright_wire.errors import WireError
from upright_wire.frames import MAX_TEXT_BYTES

GOLDEN: Final = Path(__file__).parents[1] / "contract/wire/golden.json"
MOST_MEMORY_BYTES: Final = 16 * 1024 * 1024  # for a frame of 64 KiB; Python's objects are large
VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)


def golden() -> list[str]:
    found: list[str] = []

    def look(value: object) -> None:
        if isinstance(value, str) and value.startswith("{"):
            found.append(value.partition("\n")[0])
        elif isinstance(value, dict):
            for one in value.values():
                look(one)
        elif isinstance(value, list):
            for one in value:
                look(one)

    look(json.loads(GOLDEN.read_text(encoding="utf-8")))
    return found


FRAMES: Final = golden()


def read(text: str) -> None:
    """Read a control frame as far as it goes; only a WireError may stop that."""
    with suppress(WireError):
        codec.message_of(codec.decode_text(text))


def test_there_are_frames_to_change() -> None:
    assert len(FRAMES) > 10


@pytest.mark.case("CVE-2026-25593")
@pytest.mark.clause("E3.2")
@settings(max_examples=400)
@given(st.text(max_size=400))
def test_any_text(text: str) -> None:
    read(text)


@pytest.mark.clause("E3.2")
@settings(max_examples=400)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    with suppress(WireError):
        codec.decode_data(data)


@settings(max_examples=600)
@given(st.sampled_from(FRAMES), st.data())
def test_any_field_of_a_true_frame_replaced_by_anything(text: str, data: st.DataObject) -> None:
    body = json.loads(text)
    place, owner = data.draw(st.sampled_from(sorted(body))), body
    while isinstance(owner[place], dict) and owner[place] and data.draw(st.booleans()):
        owner = owner[place]
        place = data.draw(st.sampled_from(sorted(owner)))
    owner[place] = data.draw(VALUES)
    read(json.dumps(body))


@settings(max_examples=600)
@given(
    text=st.sampled_from(FRAMES),
    place=st.integers(0),
    letter=st.integers(0, 127),
    is_cut=st.booleans(),
)
def test_any_letter_of_a_true_frame_changed_or_the_rest_cut_off(
    text: str, place: int, letter: int, *, is_cut: bool
) -> None:
    place %= len(text)
    read(text[:place] if is_cut else f"{text[:place]}{chr(letter)}{text[place + 1 :]}")


@pytest.mark.clause("E3.2")
@pytest.mark.parametrize(
    "make",
    [
        lambda n: "[" * n,
        lambda n: '{"a":' * (n // 5),
        lambda n: '{"type":"ping","seq":' + "9" * (n - 30) + "}",
        lambda n: '{"type":"ping","seq":1e' + "9" * (n - 30) + "}",
        lambda n: '{"type":"' + "a" * (n - 30) + '","seq":0}',
        lambda n: '{"type":"ping","seq":0,"x":[' + "[]," * ((n - 40) // 3) + "[]]}",
        lambda n: '{"type":"ping","seq":0' + "".join(f',"{i}":0' for i in range(n // 10)) + "}",
        lambda n: '{"type":"inventory","seq":0,"commands":[' + "{}," * ((n - 60) // 3) + "{}]}",
        lambda n: '"' + "\\u0000" * (n // 6) + '"',
        lambda n: " " * n,
        lambda n: "x" * (100 * n),
    ],
    ids=["deep", "deep object", "number", "exponent", "name", "wide", "fields", "list", *"abc"],
)
def test_a_frame_of_the_largest_size_costs_little_memory(make: Callable[[int], str]) -> None:
    text = make(MAX_TEXT_BYTES)
    tracemalloc.start()
    read(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_MEMORY_BYTES
