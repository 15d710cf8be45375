"""Specs: bounds, canonical bytes, digest."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright_wire.errors import SpecError
from upright_wire.plain import from_plain, to_plain
from upright_wire.spec import (
    MAX_GRACE_MS,
    MAX_QUOTA_BYTES,
    MAX_SPEC_BYTES,
    MAX_STDIN_BYTES,
    MAX_TIMEOUT_MS,
    Cancel,
    Spec,
    Stdin,
    canonical,
    digest,
    is_digest,
)

SHA = "0" * 64


def spec(**fields: object) -> Spec:
    maker: Callable[..., Spec] = Spec
    return maker(**{"argv": ("true",), "cwd": "/", **fields})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("argv", ()),
        ("argv", ("",)),
        ("argv", ("a\0b",)),
        ("argv", ("\ud800",)),
        ("argv", ("x" * MAX_SPEC_BYTES,)),
        ("cwd", ""),
        ("cwd", "relative"),
        ("cwd", "/a\0"),
        ("env", (("A=B", "x"),)),
        ("env", (("", "x"),)),
        ("env", (("A", "x"), ("A", "y"))),
        ("env", (("A", "\0"),)),
        ("stdin", Stdin(bytes=-1, sha256=SHA)),
        ("stdin", Stdin(bytes=MAX_STDIN_BYTES + 1, sha256=SHA)),
        ("stdin", Stdin(bytes=1, sha256=SHA.upper() + "F")),
        ("timeout_ms", 0),
        ("timeout_ms", MAX_TIMEOUT_MS + 1),
        ("cancel", Cancel(grace_ms=-1)),
        ("cancel", Cancel(grace_ms=MAX_GRACE_MS + 1)),
        ("quota_bytes", -1),
        ("quota_bytes", MAX_QUOTA_BYTES + 1),
    ],
    ids=str,
)
def test_a_spec_out_of_its_bounds_can_not_be_made(field: str, value: object) -> None:
    with pytest.raises(SpecError):
        spec(**{field: value})


@pytest.mark.parametrize("cwd", ["/srv", "C:\\work", "D:/work", "\\\\server\\share"])
def test_an_absolute_folder_of_any_system_is_taken(cwd: str) -> None:
    assert spec(cwd=cwd).cwd == cwd


@pytest.mark.clause("E4.1")
def test_the_canonical_bytes_are_sorted_ascii_without_spaces() -> None:
    assert canonical(spec(argv=("é",), env=(("A", "b"),))) == (
        b'{"argv":["\\u00e9"],"cancel":{"grace_ms":10000,"signal":"TERM"},'
        b'"confinement":"workspace","cwd":"/","env":[["A","b"]],"quota_bytes":268435456,'
        b'"timeout_ms":1800000}'
    )


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NAME = st.text("ABCXYZ_", min_size=1, max_size=9)


@given(argv=st.lists(TEXT, max_size=5), env=st.dictionaries(NAME, TEXT, max_size=5))
def test_a_spec_survives_its_bytes_and_keeps_its_digest(
    argv: list[str], env: dict[str, str]
) -> None:
    made = spec(argv=("run", *argv), env=tuple(env.items()))
    read = from_plain(Spec, json.loads(canonical(made)))
    assert read == made
    assert digest(read) == digest(made)
    assert is_digest(digest(made))


@pytest.mark.clause("E4.1")
def test_every_field_changes_the_digest() -> None:
    plain = spec()
    others = [
        spec(argv=("true", "")),
        spec(cwd="/a"),
        spec(env=(("A", ""),)),
        spec(stdin=Stdin(bytes=0, sha256=SHA)),
        spec(timeout_ms=1),
        spec(cancel=Cancel(grace_ms=1)),
        spec(quota_bytes=1),
        from_plain(Spec, {**to_dict(plain), "confinement": "none"}),
    ]
    digests = {digest(made) for made in (plain, *others)}
    assert len(digests) == len(others) + 1


def to_dict(made: Spec) -> dict[str, object]:
    plain = to_plain(made)
    assert isinstance(plain, dict)
    return plain
