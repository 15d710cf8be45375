"""Pairing: what is bound, what is compared, and what a man in the middle gets."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import fields, replace

import pytest

from fixtures.wire_signing import changed, sign_as, verify, with_field
from upright_wire import pairing
from upright_wire.errors import AuthError
from upright_wire.frames import (
    Challenge,
    Facts,
    PairCommit,
    PairOffer,
    PairPending,
    PairResult,
    PairResume,
    PairReveal,
    PairVerdict,
)
from upright_wire.handshake import key_id

HUB, DEVICE = b"H" * 32, b"D" * 32
FACTS = Facts(hostname="box", system="Linux", user="ann", version="1")


def opened(*, hub: bytes = HUB, device: bytes = DEVICE, salt: bytes = b"0") -> pairing.Opened:
    """Return an honest conversation between these two keys."""
    challenge = Challenge(hub_id="hb", hub_key_id=key_id(hub), nonce=b"n" * 32, eph=b"e" * 32)
    draft = PairReveal(
        device_key=device, nonce=salt * 32, host="hub.example.org", caps=("exec",), facts=FACTS
    )
    made = pairing.Opened(
        challenge=challenge,
        commit=PairCommit(commitment=pairing.commitment(draft)),
        offer=PairOffer(hub_key=hub, nonce=b"o" * 32),
        reveal=draft,
    )
    return replace(made, reveal=pairing.sign_reveal(made, sign_as(device)))


def altered() -> list[tuple[str, pairing.Opened]]:
    made, found = opened(), []
    for part in ("challenge", "commit", "offer", "reveal"):
        inner = getattr(made, part)
        for field in fields(inner):
            value = changed(getattr(inner, field.name))
            other = with_field(made, part, with_field(inner, field.name, value))
            found.append((f"{part}.{field.name}", other))
    return found


def test_an_honest_conversation_is_believed_and_both_sides_see_the_same() -> None:
    made = opened()
    pairing.check_opened(made, verify)
    pairing.check_offer(made.challenge, made.offer)
    assert pairing.digits(made) == pairing.digits(opened())
    assert len(pairing.digits(made)) == 6
    assert pairing.digits(made).isdecimal()


@pytest.mark.clause("E1.1", "E1.3")
@pytest.mark.parametrize(("where", "other"), altered(), ids=lambda x: str(x)[:30])
def test_everything_that_was_said_is_bound(where: str, other: pairing.Opened) -> None:
    with pytest.raises(AuthError):
        pairing.check_opened(other, verify)
    if where != "reveal.sig":
        assert pairing.request_hash(other) != pairing.request_hash(opened())
        assert pairing.transcript(other) != pairing.transcript(opened())


@pytest.mark.clause("E1.1")
def test_a_reveal_of_something_else_than_was_committed_to_is_refused() -> None:
    made = opened()
    other = replace(made.reveal, nonce=b"1" * 32)
    lied = replace(made, reveal=other)
    lied = replace(lied, reveal=pairing.sign_reveal(lied, sign_as(DEVICE)))
    with pytest.raises(AuthError, match="committed"):
        pairing.check_opened(lied, verify)


def test_a_device_that_does_not_hold_its_key_is_refused() -> None:
    made = opened()
    forged = replace(made, reveal=pairing.sign_reveal(made, sign_as(b"X" * 32)))
    with pytest.raises(AuthError, match="hold"):
        pairing.check_opened(forged, verify)


@pytest.mark.parametrize("field", ["device_key", "nonce"])
def test_a_malformed_reveal_is_refused(field: str) -> None:
    made = opened()
    with pytest.raises(AuthError, match="malformed"):
        pairing.check_opened(replace(made, reveal=with_field(made.reveal, field, b"x")), verify)


def test_a_hub_that_offers_another_key_than_it_named_is_refused() -> None:
    made = opened()
    for offer in (replace(made.offer, hub_key=b"X" * 32), replace(made.offer, nonce=b"")):
        with pytest.raises(AuthError):
            pairing.check_offer(made.challenge, offer)


@pytest.mark.clause("E1.1")
def test_a_man_in_the_middle_makes_the_digits_differ() -> None:
    mallory = b"M" * 32
    seen_by_device = opened(hub=mallory)
    seen_by_hub = opened(device=mallory)
    assert pairing.digits(seen_by_device) != pairing.digits(seen_by_hub)


def test_the_digits_of_different_conversations_are_spread() -> None:
    found = {pairing.digits(opened(salt=bytes([n]))) for n in range(256)}
    assert len(found) > 250


# ------------------------------------------------------------------ codes
@pytest.mark.clause("E1.1")
def test_codes_use_every_letter_and_no_vowel() -> None:
    numbers = itertools.cycle(range(20))
    letters = Counter(
        letter for _ in range(5) for letter in pairing.draw_code(lambda limit: next(numbers))
    )
    assert set(letters) == set(pairing.ALPHABET)
    assert len(pairing.ALPHABET) == 20
    assert not set(pairing.ALPHABET) & set("AEIOUY")


@pytest.mark.parametrize("typed", ["bcdf-ghjk", " BCDF GHJK ", "BcDfGhJk"])
def test_a_code_is_read_as_people_type_it(typed: str) -> None:
    assert pairing.read_code(typed) == "BCDFGHJK"
    assert pairing.show_code("BCDFGHJK") == "BCDF-GHJK"


@pytest.mark.parametrize("typed", ["", "BCDFGHJ", "BCDFGHJKL", "ABCDFGHJ", "1BCDFGHJ", "ßBCDFGH"])
def test_what_is_no_code_is_not_read(typed: str) -> None:
    assert pairing.read_code(typed) is None


@pytest.mark.clause("E1.3")
def test_codes_are_compared() -> None:
    assert pairing.is_same_code("BCDFGHJK", "BCDFGHJK")
    assert not pairing.is_same_code("BCDFGHJK", "BCDFGHJL")


# ------------------------------------------------------------------ what follows
PENDING = PairPending(request="rq", code="BCDFGHJK", expires_ms=1000)
RESULT = PairResult(request="rq", verdict=PairVerdict.APPROVED, device_id="dv", caps=("exec",))
RESUME = PairResume(request="rq", device_key=DEVICE)


@pytest.mark.clause("E1.2")
def test_the_hubs_words_are_bound_to_the_request_and_to_each_field() -> None:
    bytes_of = {
        pairing.pending_bytes(PENDING, "h"),
        pairing.pending_bytes(PENDING, "other"),
        pairing.pending_bytes(replace(PENDING, request="x"), "h"),
        pairing.pending_bytes(replace(PENDING, code="x"), "h"),
        pairing.pending_bytes(replace(PENDING, expires_ms=1), "h"),
        pairing.result_bytes(RESULT, "h"),
        pairing.result_bytes(RESULT, "other"),
        pairing.result_bytes(replace(RESULT, request="x"), "h"),
        pairing.result_bytes(replace(RESULT, verdict=PairVerdict.DENIED), "h"),
        pairing.result_bytes(replace(RESULT, device_id="x"), "h"),
        pairing.result_bytes(replace(RESULT, caps=()), "h"),
    }
    assert len(bytes_of) == 11


def test_coming_back_is_bound_to_this_very_challenge() -> None:
    challenge = opened().challenge
    bytes_of = {
        pairing.resume_bytes(challenge, RESUME),
        pairing.resume_bytes(replace(challenge, nonce=b"x"), RESUME),
        pairing.resume_bytes(replace(challenge, hub_id="x"), RESUME),
        pairing.resume_bytes(challenge, replace(RESUME, request="x")),
        pairing.resume_bytes(challenge, replace(RESUME, device_key=b"x")),
    }
    assert len(bytes_of) == 5


def test_a_signature_of_something_else_is_refused() -> None:
    pairing.check_signed(HUB, sign_as(HUB)(b"x"), b"x", verify)
    with pytest.raises(AuthError):
        pairing.check_signed(HUB, sign_as(HUB)(b"x"), b"y", verify)
