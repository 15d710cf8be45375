"""The session: every pair of phase and event, and every way to break the order."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from upright_wire import codec
from upright_wire.errors import (
    FrameError,
    IllegalMoveError,
    MacError,
    SequenceError,
    UnsupportedError,
    WireError,
)
from upright_wire.frames import (
    MAX_FIRST_BYTES,
    MAX_TEXT_BYTES,
    CancelCommand,
    Challenge,
    Data,
    Hello,
    Inventory,
    Kind,
    Message,
    Ping,
    Problem,
    Side,
    Sync,
    Welcome,
)
from upright_wire.handshake import LinkKeys, mac
from upright_wire.session import (
    SENDERS,
    TRANSITIONS,
    Event,
    InventoryPart,
    Phase,
    Session,
    SyncPart,
    event_of,
    step,
)

EVENTS: tuple[Event, ...] = (*get_args(Message), Data, InventoryPart, SyncPart)
BY_NAME = {event.__name__: event for event in EVENTS}
LEGAL = """
    open       Challenge=challenged
    challenged Hello=greeted PairCommit=committed PairResume=revealed Problem=challenged
    greeted    Welcome=welcomed Problem=greeted
    welcomed   InventoryPart=welcomed Inventory=listed Ping=welcomed Pong=welcomed Problem=welcomed
    listed     SyncPart=listed Sync=synced Ping=listed Pong=listed Problem=listed
    synced     Exec=synced CancelCommand=synced Refused=synced StateReport=synced Ack=synced
    synced     FinalReport=synced FinalAck=synced Workspaces=synced Data=synced
    synced     Ping=synced Pong=synced Problem=synced
    committed  PairOffer=offered Problem=committed
    offered    PairReveal=revealed Problem=offered
    revealed   PairPending=pending PairResult=settled Problem=revealed
    pending    PairResult=settled Ping=pending Pong=pending Problem=pending
    settled    Problem=settled
"""
EXPECTED = {
    (Phase(line.split()[0]), BY_NAME[move.split("=")[0]]): Phase(move.split("=")[1])
    for line in LEGAL.strip().splitlines()
    for move in line.split()[1:]
}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
@pytest.mark.parametrize("phase", Phase)
def test_every_pair_of_phase_and_event_moves_or_is_refused(phase: Phase, event: Event) -> None:
    if (phase, event) in EXPECTED:
        assert step(phase, event) is EXPECTED[phase, event]
    else:
        with pytest.raises(IllegalMoveError):
            step(phase, event)


def test_the_table_says_no_more_and_every_message_has_its_sender() -> None:
    assert TRANSITIONS == EXPECTED
    assert set(SENDERS) == set(get_args(Message))


def test_parts_are_other_events_than_the_last() -> None:
    assert event_of(Inventory(commands=(), more=True)) is InventoryPart
    assert event_of(Inventory(commands=())) is Inventory
    assert event_of(Sync(commands=(), more=True)) is SyncPart
    assert event_of(Sync(commands=())) is Sync


# ------------------------------------------------------------------ two sessions
KEYS = LinkKeys(hub=b"h" * 32, device=b"d" * 32)
CHALLENGE = Challenge(hub_id="hb", hub_key_id="k", nonce=b"", eph=b"")
HELLO = Hello(
    device_id="dv", host="h", nonce=b"", eph=b"", boot_id="", os_boot_id="", caps=(), proto=(1, 1)
)
WELCOME = Welcome(link="l", proto=1, caps=())


def welcomed(*, arm: bool = True) -> tuple[Session, Session]:
    hub, device = Session(Side.HUB), Session(Side.DEVICE)
    device.receive(hub.send(CHALLENGE))
    hub.receive(device.send(HELLO))
    device.receive(hub.send(WELCOME))
    if arm:
        hub.arm(KEYS)
        device.arm(KEYS)
    return hub, device


def synced() -> tuple[Session, Session]:
    hub, device = welcomed()
    hub.receive(device.send(Inventory(commands=())))
    device.receive(hub.send(Sync(commands=())))
    return hub, device


@pytest.mark.clause("E3.1")
def test_sealed_frames_of_both_kinds_arrive_in_both_directions() -> None:
    hub, device = synced()
    out = Data(kind=Kind.STDOUT, channel=1, offset=0, payload=b"x")
    given = Data(kind=Kind.STDIN, channel=1, offset=0, payload=b"y")
    assert hub.receive_data(device.send_data(out)) == out
    assert device.receive_data(hub.send_data(given)) == given
    assert hub.receive(device.send(Ping(number=1))) == Ping(number=1)
    assert hub.phase is device.phase is Phase.SYNCED


@pytest.mark.clause("E2.2")
def test_a_frame_that_is_lost_is_noticed_by_the_next() -> None:
    hub, device = synced()
    hub.send(Ping(number=1))
    with pytest.raises(MacError):
        device.receive(hub.send(Ping(number=2)))


@pytest.mark.clause("E2.2")
def test_a_frame_that_comes_twice_is_refused() -> None:
    hub, device = synced()
    frame = hub.send(CancelCommand(command_id="a"))
    device.receive(frame)
    with pytest.raises(MacError):
        device.receive(frame)


def test_a_frame_can_not_be_sent_back_to_its_sender() -> None:
    hub, _ = synced()
    with pytest.raises(WireError):
        hub.receive(hub.send(Ping(number=1)))


def test_text_can_not_be_passed_off_as_data() -> None:
    hub, device = synced()
    with pytest.raises(MacError):
        device.receive_data(hub.send(Ping(number=1)).encode())


@pytest.mark.parametrize(
    "frame", ["", "\n", '{"type":"ping","seq":1,"number":1}', "é\n" + "0" * 32]
)
def test_unsealed_text_is_refused_after_the_welcome(frame: str) -> None:
    _, device = welcomed()
    with pytest.raises(MacError):
        device.receive(frame)


@pytest.mark.parametrize("data", [b"", b"x" * 16, b"x" * 48])
def test_unsealed_data_is_refused_after_the_welcome(data: bytes) -> None:
    _, device = synced()
    with pytest.raises(MacError):
        device.receive_data(data)


@pytest.mark.clause("E3.1")
def test_a_sealed_text_with_another_number_inside_is_refused() -> None:
    _, device = welcomed()
    text = codec.encode_text(Ping(number=1), 7)
    sealed = f"{text}\n{mac(KEYS.hub, 2, b'T', text.encode()).hex()}"
    with pytest.raises(SequenceError):
        device.receive(sealed)


def test_numbers_count_before_the_welcome_too() -> None:
    device = Session(Side.DEVICE)
    with pytest.raises(SequenceError):
        device.receive(codec.encode_text(CHALLENGE, 1))


def test_data_has_no_place_before_the_welcome() -> None:
    hub, device = Session(Side.HUB), Session(Side.DEVICE)
    frame = Data(kind=Kind.STDIN, channel=1, offset=0, payload=b"x")
    with pytest.raises(IllegalMoveError):
        hub.send_data(frame)
    with pytest.raises(IllegalMoveError):
        device.receive_data(codec.encode_data(frame))


def test_nothing_passes_between_the_welcome_and_the_keys() -> None:
    hub, device = welcomed(arm=False)
    with pytest.raises(IllegalMoveError):
        device.send(Inventory(commands=()))
    with pytest.raises(IllegalMoveError):
        hub.receive('{"type":"ping","seq":1,"number":1}')


def test_keys_are_given_once_and_only_at_the_welcome() -> None:
    hub, _ = welcomed()
    with pytest.raises(IllegalMoveError):
        hub.arm(KEYS)
    with pytest.raises(IllegalMoveError):
        Session(Side.HUB).arm(KEYS)


@pytest.mark.parametrize("side", Side)
def test_each_message_is_sent_by_its_side_only(side: Side) -> None:
    session = Session(side)
    wrong = HELLO if side is Side.HUB else CHALLENGE
    with pytest.raises(IllegalMoveError):
        session.send(wrong)
    with pytest.raises(IllegalMoveError):
        session.receive(codec.encode_text(CHALLENGE if side is Side.HUB else HELLO, 0))


def test_output_comes_from_the_device_and_input_from_the_hub() -> None:
    hub, device = synced()
    out = Data(kind=Kind.STDOUT, channel=1, offset=0, payload=b"x")
    with pytest.raises(IllegalMoveError):
        hub.send_data(out)
    body = codec.encode_data(out)
    with pytest.raises(IllegalMoveError):
        device.receive_data(body + mac(KEYS.hub, 3, b"B", body))


@pytest.mark.clause("E3.2")
def test_an_unknown_type_is_told_and_the_link_goes_on() -> None:
    hub, device = synced()
    text = json.dumps({"type": "dance", "seq": 3})
    sealed = f"{text}\n{mac(KEYS.hub, 3, b'T', text.encode()).hex()}"
    with pytest.raises(UnsupportedError):
        device.receive(sealed)
    hub._sent += 1
    assert device.receive(hub.send(Ping(number=1))) == Ping(number=1)


@pytest.mark.clause("E3.2")
def test_an_unknown_type_that_is_optional_is_passed_over() -> None:
    _, device = synced()
    text = json.dumps({"type": "dance", "seq": 3, "optional": True})
    assert device.receive(f"{text}\n{mac(KEYS.hub, 3, b'T', text.encode()).hex()}") is None


@pytest.mark.clause("E2.1", "E3.1")
def test_a_frame_before_the_welcome_may_have_16_kib_and_later_64() -> None:
    device = Session(Side.DEVICE)
    with pytest.raises(FrameError):
        device.receive(" " * (MAX_FIRST_BYTES + 1))
    hub, device = welcomed()
    large = Problem(code="x" * (MAX_TEXT_BYTES - 200))
    assert device.receive(hub.send(large)) == large
    with pytest.raises(FrameError):
        device.receive(" " * (MAX_TEXT_BYTES + 100))


def test_a_refused_send_takes_no_number() -> None:
    hub, device = synced()
    with pytest.raises(IllegalMoveError):
        hub.send(CHALLENGE)
    assert device.receive(hub.send(Ping(number=1))) == Ping(number=1)
