"""Codec: frames to bytes and back; size and depth are bounded here, before anything is believed.

A control message is one JSON object in ASCII with ``type`` and ``seq``; ``optional`` true means
that who does not know the type may skip it. A data frame is a header of 16 bytes and its payload.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Final, get_args

from upright_wire.errors import FrameError, UnsupportedError
from upright_wire.frames import MAX_PAYLOAD_BYTES, MAX_TEXT_BYTES, Data, Flag, Kind, Message
from upright_wire.plain import MAX_INT, from_plain, to_plain

MAX_DEPTH: Final = 8
HEADER: Final = struct.Struct(">BBHIQ")  # kind, flags, channel, length, offset
COUNT: Final = struct.Struct(">Q")
_KNOWN_FLAGS: Final = int(Flag.END | Flag.GAP)  # ~ of a flag knows no other bits
TYPES: Final[dict[str, type[Message]]] = {kind.TYPE: kind for kind in get_args(Message)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A control message, read as far as its place in the conversation."""

    seq: int
    type: str
    is_optional: bool
    body: dict[str, object]


# ------------------------------------------------------------------ control messages
def encode_text(message: Message, seq: int) -> str:
    """Return the JSON text of a message.

    Raises:
        FrameError: it is too large.
    """
    plain = to_plain(message)
    head = {"type": message.TYPE, "seq": seq}
    text = json.dumps({**head, **plain} if isinstance(plain, dict) else head, separators=(",", ":"))
    if len(text) > MAX_TEXT_BYTES:
        raise FrameError(type=message.TYPE, bytes=len(text), max_bytes=MAX_TEXT_BYTES)
    return text


def decode_text(text: str, *, max_bytes: int = MAX_TEXT_BYTES) -> Envelope:
    """Read a JSON text as far as type and number.

    Raises:
        FrameError: it is too large, too deep, or not such an object.
    """
    if len(text) > max_bytes or not text.isascii():
        raise FrameError(chars=len(text), max_bytes=max_bytes, expected="ASCII")
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_float=_no_number, parse_constant=_no_number
        )
    except (ValueError, RecursionError) as error:
        raise FrameError(expected="JSON") from error
    if not isinstance(value, dict) or not _is_shallow(value, MAX_DEPTH):
        raise FrameError(expected="an object", max_depth=MAX_DEPTH)
    kind, seq, optional = value.get("type"), value.get("seq"), value.get("optional", False)
    if not isinstance(kind, str) or type(seq) is not int or not isinstance(optional, bool):
        raise FrameError(expected="type and seq")
    return Envelope(seq=seq, type=kind, is_optional=optional, body=value)


def message_of(envelope: Envelope) -> Message | None:
    """Return the message; None for one that is not known and marked optional.

    Raises:
        UnsupportedError: the type is not known.
        FrameError: a field is missing or wrong.
    """
    kind = TYPES.get(envelope.type)
    if kind is not None:
        return from_plain(kind, envelope.body)
    if envelope.is_optional:
        return None
    raise UnsupportedError(type=envelope.type[:64])


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _no_number(text: str) -> object:
    raise ValueError(text)


def _is_shallow(value: object, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_is_shallow(item, depth - 1) for item in inner)


# ------------------------------------------------------------------ data
def encode_data(frame: Data) -> bytes:
    """Return header and payload.

    Raises:
        FrameError: the frame breaks the rules.
    """
    _check(frame)
    length = len(frame.payload)
    return HEADER.pack(frame.kind, frame.flags, frame.channel, length, frame.offset) + frame.payload


def decode_data(data: bytes) -> Data:
    """Read a data frame.

    Raises:
        UnsupportedError: the kind is reserved or unknown.
        FrameError: the frame breaks the rules.
    """
    if len(data) < HEADER.size:
        raise FrameError(bytes=len(data), min_bytes=HEADER.size)
    kind, flags, channel, length, offset = HEADER.unpack_from(data)
    if kind not in list(Kind):
        raise UnsupportedError(kind=kind)
    payload = data[HEADER.size :]
    if length != len(payload) or flags & ~_KNOWN_FLAGS:
        raise FrameError(length=length, bytes=len(payload), flags=flags)
    frame = Data(
        kind=Kind(kind), flags=Flag(flags), channel=channel, offset=offset, payload=payload
    )
    _check(frame)
    return frame


def gap(kind: Kind, channel: int, offset: int, count: int) -> Data:
    """Return the frame that says: *count* bytes from *offset* on were not kept."""
    payload = COUNT.pack(count)
    return Data(kind=kind, flags=Flag.GAP, channel=channel, offset=offset, payload=payload)


def after(frame: Data) -> int:
    """Return the offset of the stream that follows this frame."""
    is_gap = Flag.GAP in frame.flags
    count: int = COUNT.unpack(frame.payload)[0] if is_gap else len(frame.payload)
    return frame.offset + count


def _check(frame: Data) -> None:
    if len(frame.payload) > MAX_PAYLOAD_BYTES or not 0 < frame.channel < 2**16:
        raise FrameError(channel=frame.channel, bytes=len(frame.payload))
    if Flag.GAP in frame.flags and (
        Flag.END in frame.flags or frame.kind is Kind.STDIN or len(frame.payload) != COUNT.size
    ):
        raise FrameError(flags=int(frame.flags), kind=frame.kind.name)
    if not (frame.offset >= 0 and after(frame) <= MAX_INT):
        raise FrameError(offset=frame.offset)
    if after(frame) == frame.offset and Flag.END not in frame.flags:
        raise FrameError(offset=frame.offset, expected="a payload or an end")
