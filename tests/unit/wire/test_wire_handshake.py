"""The handshake: what the signatures cover, what the keys depend on."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from fixtures.wire_signing import changed, sign_as, verify, with_field
from upright_wire.errors import AuthError, MacError
from upright_wire.frames import Challenge, Hello, Side, Welcome
from upright_wire.handshake import (
    Greeting,
    check_challenge,
    check_hello,
    check_mac,
    check_welcome,
    hkdf,
    key_id,
    link_keys,
    mac,
    pack,
    sign_hello,
    sign_welcome,
    transcript,
)

HUB, DEVICE = b"H" * 32, b"D" * 32


def greeting() -> Greeting:
    challenge = Challenge(hub_id="hb_1", hub_key_id=key_id(HUB), nonce=b"n" * 32, eph=b"e" * 32)
    hello = Hello(
        device_id="dv_1",
        host="hub.example.org",
        nonce=b"N" * 32,
        eph=b"E" * 32,
        boot_id="boot",
        os_boot_id="os",
        caps=("a", "b"),
        proto=(1, 1),
    )
    made = Greeting(challenge=challenge, hello=hello, hub_key=HUB, device_key=DEVICE)
    return sign_hello(made, sign_as(DEVICE))


def welcome() -> Welcome:
    plain = Welcome(link="l1", proto=1, caps=("a",))
    return sign_welcome(greeting(), plain, sign_as(HUB))


def altered_greetings() -> list[tuple[str, Greeting]]:
    made = greeting()
    found = []
    for part in ("challenge", "hello"):
        inner = getattr(made, part)
        for field in fields(inner):
            value = changed(getattr(inner, field.name))
            other = with_field(made, part, with_field(inner, field.name, value))
            found.append((f"{part}.{field.name}", other))
    found.append(("hub_key", with_field(made, "hub_key", changed(HUB))))
    found.append(("device_key", with_field(made, "device_key", changed(DEVICE))))
    return found


@pytest.mark.clause("E2.2")
def test_a_true_hello_and_a_true_welcome_are_believed() -> None:
    check_hello(greeting(), verify)
    check_welcome(greeting(), welcome(), verify)


@pytest.mark.clause("E2.2")
@pytest.mark.parametrize(("where", "other"), altered_greetings(), ids=lambda x: str(x)[:30])
def test_the_devices_signature_covers_everything(where: str, other: Greeting) -> None:
    with pytest.raises(AuthError):
        check_hello(other, verify)


@pytest.mark.clause("E2.2")
@pytest.mark.parametrize(("where", "other"), altered_greetings(), ids=lambda x: str(x)[:30])
def test_the_hubs_signature_and_the_keys_cover_the_transcript(where: str, other: Greeting) -> None:
    if where == "hello.sig":
        assert transcript(other) == transcript(greeting())
        return
    with pytest.raises(AuthError):
        check_welcome(other, welcome(), verify)
    assert link_keys(other, b"s" * 32) != link_keys(greeting(), b"s" * 32)


@pytest.mark.clause("E2.2")
@pytest.mark.parametrize("field", [field.name for field in fields(Welcome)])
def test_the_hubs_signature_covers_the_welcome(field: str) -> None:
    other = with_field(welcome(), field, changed(getattr(welcome(), field)))
    with pytest.raises(AuthError):
        check_welcome(greeting(), other, verify)


def test_a_signature_of_the_other_role_does_not_count() -> None:
    made = greeting()
    as_hub = sign_as(DEVICE)(pack("hub", transcript(made)))
    with pytest.raises(AuthError):
        check_hello(replace(made, hello=replace(made.hello, sig=as_hub)), verify)


@pytest.mark.parametrize("proto", [(2, 3), (0, 0), (-1, 1), (1, 2**32)], ids=str)
def test_a_device_without_our_protocol_is_refused(proto: tuple[int, int]) -> None:
    made = greeting()
    with pytest.raises(AuthError):
        check_hello(replace(made, hello=replace(made.hello, proto=proto)), verify)


def test_a_welcome_to_another_protocol_is_refused_though_it_is_signed() -> None:
    other = sign_welcome(greeting(), Welcome(link="l", proto=2, caps=()), sign_as(HUB))
    with pytest.raises(AuthError):
        check_welcome(greeting(), other, verify)


@pytest.mark.clause("E2.2")
@pytest.mark.parametrize(
    "change",
    [
        lambda c: replace(c, hub_id="hb_2"),
        lambda c: replace(c, hub_key_id=key_id(DEVICE)),
        lambda c: replace(c, nonce=b""),
        lambda c: replace(c, eph=b"e" * 31),
    ],
    ids=["hub", "key", "nonce", "eph"],
)
def test_a_device_answers_the_pinned_hub_only(change: Callable[[Challenge], Challenge]) -> None:
    challenge = greeting().challenge
    check_challenge(challenge, hub_id="hb_1", hub_key=HUB)
    with pytest.raises(AuthError):
        check_challenge(change(challenge), hub_id="hb_1", hub_key=HUB)


@pytest.mark.parametrize("field", ["nonce", "eph"])
def test_a_hello_with_a_short_nonce_or_key_is_refused(field: str) -> None:
    made = greeting()
    with pytest.raises(AuthError):
        check_hello(replace(made, hello=with_field(made.hello, field, b"x")), verify)


@pytest.mark.parametrize("shared", [bytes(32), b"", b"x" * 31], ids=["zero", "none", "short"])
def test_a_degenerate_secret_makes_no_keys(shared: bytes) -> None:
    with pytest.raises(AuthError):
        link_keys(greeting(), shared)


def test_the_two_directions_have_different_keys() -> None:
    keys = link_keys(greeting(), b"s" * 32)
    assert keys.of(Side.HUB) != keys.of(Side.DEVICE)
    assert len(keys.hub) == len(keys.device) == 32


def test_hkdf_gives_the_bytes_of_rfc_5869() -> None:
    secret, salt = b"\x0b" * 22, bytes(range(13))
    info = bytes(range(0xF0, 0xFA))
    assert hkdf(secret, salt=salt, info=info, length=42).hex() == (
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    )


def test_packing_tells_apart_what_joining_would_not() -> None:
    assert pack("ab", "c") != pack("a", "bc")
    assert pack("a", "") != pack("a")


@pytest.mark.clause("E2.2")
def test_a_mac_depends_on_key_number_kind_and_bytes() -> None:
    base = mac(b"k", 1, b"T", b"x")
    others = [mac(b"l", 1, b"T", b"x"), mac(b"k", 2, b"T", b"x"), mac(b"k", 1, b"B", b"x")]
    assert base not in [*others, mac(b"k", 1, b"T", b"y")]
    expected = hmac.new(b"k", (1).to_bytes(8) + b"Tx", hashlib.sha256).digest()
    assert base == expected[:16]


@pytest.mark.clause("E2.2")
def test_a_wrong_mac_is_refused() -> None:
    check_mac(b"a" * 16, b"a" * 16)
    for wrong in (b"a" * 15 + b"b", b"", b"a" * 15):
        with pytest.raises(MacError):
            check_mac(b"a" * 16, wrong)
