"""The tray between a link's reader and its handler: order, joined pieces, bounds, the end."""

from __future__ import annotations

import asyncio

import pytest

from upright.devices.intray import MOST_BYTES, MOST_WAITING, Intray
from upright.devices.transport import GoneError
from upright_wire.codec import COUNT
from upright_wire.frames import Data, Flag, Kind, Pong

KIB64 = 64 * 1024


def piece(
    offset: int, payload: bytes, *, kind: Kind = Kind.STDOUT, flags: Flag = Flag.NONE, on: int = 1
) -> Data:
    return Data(kind=kind, channel=on, offset=offset, payload=payload, flags=flags)


async def others_go_first() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def filled(*what: Data | Pong) -> Intray:
    tray = Intray()
    for one in what:
        await tray.put(one)
    tray.end(GoneError())
    return tray


async def emptied(tray: Intray) -> list[object]:
    taken = list[object]()
    try:
        while True:
            taken.append(await tray.take())
    except GoneError:
        return taken


async def test_pieces_that_adjoin_are_taken_as_one() -> None:
    tray = await filled(piece(0, b"ab"), piece(2, b"cd"), piece(4, b"e", flags=Flag.END))
    assert await emptied(tray) == [piece(0, b"abcde", flags=Flag.END)]


@pytest.mark.parametrize(
    "second",
    [
        piece(2, b"x", kind=Kind.STDERR),
        piece(2, b"x", on=2),
        piece(1, b"x"),
        piece(3, b"x"),
        piece(2, COUNT.pack(7), flags=Flag.GAP),
        Pong(number=1),
    ],
    ids=["other_stream", "other_command", "repeated", "missing", "gap", "message"],
)
async def test_what_does_not_go_on_there_stays_by_itself(second: Data | Pong) -> None:
    first = piece(0, b"ab")
    assert await emptied(await filled(first, second)) == [first, second]


@pytest.mark.parametrize("flag", [Flag.GAP, Flag.END])
async def test_nothing_is_joined_behind_a_gap_or_an_end(flag: Flag) -> None:
    first = piece(0, COUNT.pack(2), flags=flag)
    following = piece(2 if flag is Flag.GAP else COUNT.size, b"x")
    assert await emptied(await filled(first, following)) == [first, following]


async def test_a_joined_piece_is_bounded() -> None:
    whole = [piece(n * KIB64, b"x" * KIB64) for n in range(MOST_BYTES // KIB64 + 3)]
    taken = await emptied(await filled(*whole))
    sizes = [len(one.payload) for one in taken if isinstance(one, Data)]
    assert sizes == [MOST_BYTES, 3 * KIB64]


async def test_a_full_tray_holds_the_reader_up_until_something_is_taken() -> None:
    tray = Intray()
    for n in range(MOST_WAITING):
        await tray.put(Pong(number=n))
    async with asyncio.TaskGroup() as group:
        late = group.create_task(tray.put(Pong(number=MOST_WAITING)))
        await others_go_first()
        assert not late.done()
        assert await tray.take() == Pong(number=0)
    tray.end(GoneError())
    assert await emptied(tray) == [Pong(number=n) for n in range(1, MOST_WAITING + 1)]


async def test_whoever_waits_for_something_learns_of_the_end() -> None:
    tray = Intray()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(emptied(tray))
        await others_go_first()
        tray.end(GoneError(1000))
    assert waiting.result() == []
