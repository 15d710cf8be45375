"""The codec: bounds on size and depth, and refusals, for both kinds of frames."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright_wire import codec
from upright_wire.errors import FrameError, UnsupportedError, WireError
from upright_wire.frames import MAX_PAYLOAD_BYTES, MAX_TEXT_BYTES, Data, Flag, Kind, Ping, Problem
from upright_wire.plain import MAX_INT


def test_a_message_survives_its_text() -> None:
    text = codec.encode_text(Ping(number=3), 9)
    envelope = codec.decode_text(text)
    assert (envelope.seq, envelope.type) == (9, "ping")
    assert codec.message_of(envelope) == Ping(number=3)


@pytest.mark.clause("E3.2")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "1",
        "{",
        '{"type":"ping"}',
        '{"type":1,"seq":1}',
        '{"type":"ping","seq":"1"}',
        '{"type":"ping","seq":true}',
        '{"type":"ping","seq":1.0,"number":1}',
        '{"type":"ping","seq":1,"number":NaN}',
        '{"type":"ping","seq":1,"optional":1}',
        '{"type":"ping","type":"pong","seq":1}',
        '{"type":"ping","seq":1,"é":1}',
        '{"type":"ping","seq":' + "1" * 5000 + "}",
        '{"type":"ping","seq":1,"x":' + "[" * 9 + "]" * 9 + "}",
        "[" * 60_000,
        '{"x":"' + "y" * MAX_TEXT_BYTES + '"}',
    ],
    ids=lambda text: text[:40] + str(len(text)),
)
def test_text_that_is_no_control_message_is_refused(text: str) -> None:
    with pytest.raises(FrameError):
        codec.decode_text(text)


@pytest.mark.clause("E3.2")
def test_a_message_with_a_wrong_field_is_refused() -> None:
    with pytest.raises(FrameError):
        codec.message_of(codec.decode_text('{"type":"ping","seq":1,"number":"one"}'))


@pytest.mark.clause("E3.2")
def test_an_unknown_type_is_unsupported_unless_it_is_marked_optional() -> None:
    unknown = {"type": "dance", "seq": 1}
    with pytest.raises(UnsupportedError):
        codec.message_of(codec.decode_text(json.dumps(unknown)))
    assert codec.message_of(codec.decode_text(json.dumps({**unknown, "optional": True}))) is None


@pytest.mark.clause("E3.1", "E3.2")
def test_a_message_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(FrameError):
        codec.encode_text(Problem(code="x" * MAX_TEXT_BYTES), 0)


@pytest.mark.clause("E3.2")
def test_eight_levels_are_deep_enough_and_nine_are_too_many() -> None:
    codec.decode_text('{"type":"x","seq":1,"x":' + "[" * 7 + "]" * 7 + "}")
    with pytest.raises(FrameError):
        codec.decode_text('{"type":"x","seq":1,"x":' + "[" * 8 + "]" * 8 + "}")


@pytest.mark.clause("E3.1")
@given(
    kind=st.sampled_from(Kind),
    channel=st.integers(1, 2**16 - 1),
    offset=st.integers(0, 2**62),
    payload=st.binary(min_size=1, max_size=200),
    is_end=st.booleans(),
)
def test_a_data_frame_survives_its_bytes(
    kind: Kind, channel: int, offset: int, payload: bytes, *, is_end: bool
) -> None:
    flags = Flag.END if is_end else Flag.NONE
    frame = Data(kind=kind, channel=channel, offset=offset, payload=payload, flags=flags)
    data = codec.encode_data(frame)
    assert codec.decode_data(data) == frame
    assert len(data) == 16 + len(payload)
    assert codec.after(frame) == offset + len(payload)


@pytest.mark.clause("E3.2")
@given(st.binary(max_size=100))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    try:
        frame = codec.decode_data(data)
    except WireError:
        return
    assert codec.encode_data(frame) == data


def header(kind: int = 1, flags: int = 0, channel: int = 1, length: int = 1) -> bytes:
    return struct.pack(">BBHIQ", kind, flags, channel, length, 0)


@pytest.mark.clause("E3.1")
@pytest.mark.parametrize(
    "data",
    [
        header()[:15],
        header(),
        header() + b"xy",
        header(flags=4) + b"x",
        header(channel=0) + b"x",
        header(length=0),
        header(flags=2) + b"x",
        header(flags=3, length=8) + bytes(7) + b"\1",
        header(kind=3, flags=2, length=8) + bytes(7) + b"\1",
        header(flags=2, length=8) + bytes(8),
        header(flags=2, length=8) + b"\xff" * 8,
        header(length=MAX_PAYLOAD_BYTES + 1) + bytes(MAX_PAYLOAD_BYTES + 1),
    ],
    ids=[
        "short",
        "no payload",
        "long",
        "flag",
        "channel 0",
        "empty",
        "gap without count",
        "gap and end",
        "gap in stdin",
        "empty gap",
        "endless gap",
        "too large",
    ],
)
def test_a_data_frame_that_breaks_a_rule_is_refused(data: bytes) -> None:
    with pytest.raises(FrameError):
        codec.decode_data(data)


@pytest.mark.clause("E3.1", "E3.2")
@pytest.mark.parametrize("kind", [0, 4, 5, 255])
def test_reserved_and_unknown_kinds_are_unsupported(kind: int) -> None:
    with pytest.raises(UnsupportedError):
        codec.decode_data(header(kind=kind) + b"x")


def test_a_frame_that_breaks_a_rule_is_not_sent() -> None:
    with pytest.raises(FrameError):
        codec.encode_data(Data(kind=Kind.STDOUT, channel=1, offset=MAX_INT, payload=b"x"))
    with pytest.raises(FrameError):
        codec.encode_data(Data(kind=Kind.STDOUT, channel=1, offset=-1, payload=b"x"))


def test_an_end_may_be_empty() -> None:
    frame = Data(kind=Kind.STDIN, channel=1, offset=0, flags=Flag.END)
    assert codec.decode_data(codec.encode_data(frame)) == frame


@pytest.mark.clause("E3.1")
def test_a_gap_reaches_as_far_as_it_counts() -> None:
    frame = codec.decode_data(codec.encode_data(codec.gap(Kind.STDERR, 2, 10, 2**40)))
    assert codec.after(frame) == 10 + 2**40
