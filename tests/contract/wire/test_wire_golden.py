"""Golden vectors: these values have been these bytes since version 1 of the protocol.

``now()`` is what golden.json would hold. A change here is a change of the protocol: raise PROTO.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, get_args

import pytest

from upright_wire import codec, pairing
from upright_wire.command import (
    Ending,
    Omitted,
    Outcome,
    Process,
    Refusal,
    Started,
    State,
    Stream,
    Totals,
)
from upright_wire.frames import (
    Ack,
    CancelCommand,
    Challenge,
    Data,
    Exec,
    Facts,
    FinalAck,
    FinalReport,
    Flag,
    Held,
    Hello,
    Inventory,
    Kind,
    Message,
    PairCommit,
    PairOffer,
    PairPending,
    PairResult,
    PairResume,
    PairReveal,
    PairVerdict,
    Ping,
    Pong,
    Problem,
    Refused,
    StateReport,
    Sync,
    Wanted,
    Welcome,
    Workspace,
    Workspaces,
)
from upright_wire.handshake import Greeting, caps_hash, key_id, link_keys, mac, transcript
from upright_wire.spec import Cancel, Confinement, Signal, Spec, Stdin, canonical, digest

GOLDEN: Final = Path(__file__).with_name("golden.json")
HUB_KEY, DEVICE_KEY, NONCE, EPH, SIG = (bytes([n]) * 32 for n in range(1, 6))
SHA: Final = "ab" * 32

SPEC: Final = Spec(
    argv=("git", "commit", "-m", "Grüße\n"),
    cwd="/home/ann/project",
    env=(("LANG", "C.UTF-8"), ("CI", "1")),
    stdin=Stdin(bytes=5, sha256=SHA),
    timeout_ms=60_000,
    cancel=Cancel(signal=Signal.INT, grace_ms=5_000),
    quota_bytes=1_000_000,
    confinement=Confinement.WORKSPACE_NO_NETWORK,
)
FACTS: Final = Facts(hostname="box", system="Linux 6.1", user="ann", version="0.1.0")
CHALLENGE: Final = Challenge(hub_id="hb_1", hub_key_id=key_id(HUB_KEY), nonce=NONCE, eph=EPH)
HELLO: Final = Hello(
    device_id="dv_1",
    host="hub.example.org:8443",
    nonce=NONCE,
    eph=EPH,
    boot_id="boot",
    os_boot_id="os-boot",
    caps=("exec", "stdin"),
    proto=(1, 1),
    sig=SIG,
)
REVEAL: Final = PairReveal(
    device_key=DEVICE_KEY, nonce=NONCE, host="hub.example.org", caps=("exec",), facts=FACTS, sig=SIG
)
COMMIT: Final = PairCommit(commitment=pairing.commitment(REVEAL))
OFFER: Final = PairOffer(hub_key=HUB_KEY, nonce=NONCE)
OUTCOME: Final = Outcome(
    ending=Ending.EXITED,
    started=Started.YES,
    number=1,
    text="note",
    stdout=Totals(bytes=4_000_000, sha256=SHA, omitted=(Omitted(offset=1024, count=2048),)),
    survivors=(Process(pid=7, name="sleep"),),
    pipe_held=True,
    env_dropped=("LD_PRELOAD",),
    elapsed_ms=1_500,
    cpu_ms=20,
    peak_memory_bytes=3_000_000,
)

MESSAGES: Final[dict[str, Message]] = {
    "challenge": CHALLENGE,
    "hello": HELLO,
    "welcome": Welcome(link="0011223344556677", proto=1, caps=("exec",), sig=SIG),
    "pair_commit": COMMIT,
    "pair_offer": OFFER,
    "pair_reveal": REVEAL,
    "pair_resume": PairResume(request="rq_1", device_key=DEVICE_KEY, sig=SIG),
    "pair_pending": PairPending(request="rq_1", code="BCDFGHJK", expires_ms=600_000, sig=SIG),
    "pair_result": PairResult(
        request="rq_1", verdict=PairVerdict.APPROVED, device_id="dv_1", caps=("exec",), sig=SIG
    ),
    "inventory": Inventory(
        commands=(
            Held(command_id="jb_1", digest=SHA, state=State.STARTED, stdout=9, stderr=8, stdin=7),
        ),
        more=True,
    ),
    "sync": Sync(
        commands=(Wanted(command_id="jb_1", channel=1, stdout=5, stderr=0),),
        cancel=("jb_2",),
        forget=("jb_3",),
    ),
    "exec": Exec(
        command_id="jb_1",
        channel=1,
        session="se_1",
        lease_epoch=3,
        digest=digest(SPEC),
        spec=SPEC,
        ttl_ms=600_000,
    ),
    "cancel": CancelCommand(command_id="jb_1"),
    "refused": Refused(command_id="jb_1", refusal=Refusal.STALE_EPOCH),
    "state": StateReport(command_id="jb_1", state=State.STARTED, started=Started.YES, pid=42),
    "ack": Ack(command_id="jb_1", stream=Stream.STDERR, offset=65_536),
    "final": FinalReport(command_id="jb_1", outcome=OUTCOME),
    "final_ack": FinalAck(command_id="jb_1"),
    "workspaces": Workspaces(
        workspaces=(
            Workspace(path="/srv/a", remotes=("git@example.org:a.git",), labels=("x",), owner="a"),
        ),
        files=("/usr/bin/python3", "run.py"),
    ),
    "ping": Ping(number=1),
    "pong": Pong(number=1),
    "error": Problem(code="wire.unsupported", about="dance", retry_after_ms=1_000),
}
FRAMES: Final[dict[str, Data]] = {
    "stdout": Data(kind=Kind.STDOUT, channel=1, offset=2**40, payload=b"caf\xc3\xa9\x00\xff"),
    "stderr, end": Data(kind=Kind.STDERR, channel=258, offset=0, payload=b"x", flags=Flag.END),
    "stdin, empty end": Data(kind=Kind.STDIN, channel=65_535, offset=3, flags=Flag.END),
    "stdout, gap": codec.gap(Kind.STDOUT, 1, 1024, 2048),
}


def derived() -> dict[str, str]:
    """Return what is computed from values, not sent: both sides must compute the same."""
    greeting = Greeting(challenge=CHALLENGE, hello=HELLO, hub_key=HUB_KEY, device_key=DEVICE_KEY)
    keys = link_keys(greeting, b"shared" + bytes(26))
    opened = pairing.Opened(challenge=CHALLENGE, commit=COMMIT, offer=OFFER, reveal=REVEAL)
    pending, result = MESSAGES["pair_pending"], MESSAGES["pair_result"]
    resume = MESSAGES["pair_resume"]
    assert isinstance(pending, PairPending)
    assert isinstance(result, PairResult)
    assert isinstance(resume, PairResume)
    return {
        "canonical spec": canonical(SPEC).decode("ascii"),
        "digest of the spec": digest(SPEC),
        "key id": key_id(HUB_KEY),
        "hash of caps": caps_hash(("exec", "stdin")).hex(),
        "transcript": transcript(greeting).hex(),
        "hub's MAC key": keys.hub.hex(),
        "device's MAC key": keys.device.hex(),
        "MAC of a text": mac(keys.hub, 2, b"T", b"{}").hex(),
        "MAC of data": mac(keys.device, 2, b"B", b"{}").hex(),
        "commitment": COMMIT.commitment.hex(),
        "pairing transcript": pairing.transcript(opened).hex(),
        "hash of the request": pairing.request_hash(opened),
        "digits": pairing.digits(opened),
        "signed pending": pairing.pending_bytes(pending, SHA).hex(),
        "signed result": pairing.result_bytes(result, SHA).hex(),
        "signed resume": pairing.resume_bytes(CHALLENGE, resume).hex(),
    }


def now() -> dict[str, dict[str, str]]:
    """Return what golden.json would hold."""
    return {
        "messages": {name: codec.encode_text(value, 7) for name, value in MESSAGES.items()},
        "frames": {name: codec.encode_data(value).hex() for name, value in FRAMES.items()},
        "derived": derived(),
    }


@pytest.fixture(scope="module")
def golden() -> dict[str, dict[str, str]]:
    held: dict[str, dict[str, str]] = json.loads(GOLDEN.read_text(encoding="ascii"))
    return held


@pytest.mark.clause("E3.2")
def test_every_message_and_every_vector_is_there(golden: dict[str, dict[str, str]]) -> None:
    assert set(MESSAGES) == {kind.TYPE for kind in get_args(Message)}
    assert {part: set(held) for part, held in golden.items()} == {
        part: set(made) for part, made in now().items()
    }


@pytest.mark.clause("E3.2")
@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_these_bytes(name: str, golden: dict[str, dict[str, str]]) -> None:
    text = golden["messages"][name]
    assert codec.encode_text(MESSAGES[name], 7) == text
    assert codec.message_of(codec.decode_text(text)) == MESSAGES[name]


@pytest.mark.clause("E3.1")
@pytest.mark.parametrize("name", FRAMES)
def test_a_data_frame_is_these_bytes(name: str, golden: dict[str, dict[str, str]]) -> None:
    data = bytes.fromhex(golden["frames"][name])
    assert codec.encode_data(FRAMES[name]) == data
    assert codec.decode_data(data) == FRAMES[name]


@pytest.mark.clause("E2.2")
def test_what_both_sides_derive_is_this(golden: dict[str, dict[str, str]]) -> None:
    assert derived() == golden["derived"]
