"""The handshake: both sides prove their key over one transcript, and agree on keys for the MACs.

Signing, verifying and X25519 are passed in; freshness is the nonces, clocks play no part (E2.2).
HKDF is RFC 5869 with SHA-256.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from upright_wire.errors import AuthError, MacError
from upright_wire.frames import PROTO, Challenge, Hello, Side, Welcome
from upright_wire.plain import to_plain

DOMAIN: Final = b"upright-execd-auth-1"
NONCE_BYTES: Final = 32
KEY_BYTES: Final = 32
MAC_BYTES: Final = 16

Sign = Callable[[bytes], bytes]
Verify = Callable[[bytes, bytes, bytes], bool]  # (public key, signature, what was signed)
Agree = Callable[[bytes], bytes]  # X25519 of our one-time private key with the far public key


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTime:
    """What a side makes anew for each socket: nonce, X25519 public key, and its private half."""

    nonce: bytes
    eph: bytes
    agree: Agree


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkKeys:
    """The MAC keys of one link, by who sends."""

    hub: bytes
    device: bytes

    def of(self, side: Side) -> bytes:
        """Return the key under which *side* sends."""
        return self.hub if side is Side.HUB else self.device


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """A challenge, the hello that answers it, and the two keys that are believed."""

    challenge: Challenge
    hello: Hello
    hub_key: bytes
    device_key: bytes


def pack(*parts: bytes | str) -> bytes:
    """Join parts so that no two lists of parts give the same bytes: each after its length."""
    raw = [part.encode() if isinstance(part, str) else part for part in parts]
    return b"".join(struct.pack(">I", len(part)) + part for part in raw)


def key_id(public_key: bytes) -> str:
    """Return the short name of a public key."""
    return hashlib.sha256(public_key).hexdigest()[:32]


def caps_hash(caps: tuple[str, ...]) -> bytes:
    """Return the SHA-256 of a list of capabilities."""
    return hashlib.sha256(pack(*caps)).digest()


def transcript(greeting: Greeting) -> bytes:
    """Return what both signatures cover."""
    challenge, hello = greeting.challenge, greeting.hello
    return pack(
        DOMAIN,
        challenge.hub_id,
        challenge.hub_key_id,
        greeting.hub_key,
        hello.host,
        challenge.nonce,
        hello.nonce,
        challenge.eph,
        hello.eph,
        hello.device_id,
        greeting.device_key,
        hello.boot_id,
        hello.os_boot_id,
        struct.pack(">II", *hello.proto),
        caps_hash(hello.caps),
    )


# ------------------------------------------------------------------ the device's side
def check_challenge(challenge: Challenge, *, hub_id: str, hub_key: bytes) -> None:
    """Refuse to answer a hub that is not the pinned one.

    Raises:
        AuthError: another hub or key, or a malformed challenge.
    """
    if challenge.hub_id != hub_id or challenge.hub_key_id != key_id(hub_key):
        raise AuthError(hub=challenge.hub_id[:64], expected=hub_id)
    _check_sizes(challenge.nonce, challenge.eph)


def sign_hello(greeting: Greeting, sign: Sign) -> Greeting:
    """Return the greeting with the device's signature in its hello."""
    signature = sign(pack("device", transcript(greeting)))
    return replace(greeting, hello=replace(greeting.hello, sig=signature))


def check_welcome(greeting: Greeting, welcome: Welcome, verify: Verify) -> None:
    """Believe the hub, and only then anything that it says.

    Raises:
        AuthError: it is not the pinned hub, or its words were changed.
    """
    if not verify(greeting.hub_key, welcome.sig, _welcome_bytes(greeting, welcome)):
        raise AuthError(hub=greeting.challenge.hub_id[:64])
    low, high = greeting.hello.proto
    if not low <= welcome.proto <= high:
        raise AuthError(proto=welcome.proto)


# ------------------------------------------------------------------ the hub's side
def check_hello(greeting: Greeting, verify: Verify) -> None:
    """Believe the device.

    Raises:
        AuthError: another key, a changed field, or an answer to another challenge.
    """
    _check_sizes(greeting.hello.nonce, greeting.hello.eph)
    low, high = greeting.hello.proto
    if not 0 <= low <= PROTO <= high < 2**32:
        raise AuthError(proto=f"{low}-{high}", supported=PROTO)
    signed = pack("device", transcript(greeting))
    if not verify(greeting.device_key, greeting.hello.sig, signed):
        raise AuthError(device=greeting.hello.device_id[:64])


def sign_welcome(greeting: Greeting, welcome: Welcome, sign: Sign) -> Welcome:
    """Return the welcome with the hub's signature, over the transcript and the welcome itself."""
    return replace(welcome, sig=sign(_welcome_bytes(greeting, welcome)))


# ------------------------------------------------------------------ keys and MACs
def link_keys(greeting: Greeting, shared: bytes) -> LinkKeys:
    """Return the MAC keys for both directions, from the X25519 secret and the transcript.

    Raises:
        AuthError: the far side sent a degenerate key.
    """
    if len(shared) != KEY_BYTES or not any(shared):
        raise AuthError(eph="degenerate")
    salt = hashlib.sha256(transcript(greeting)).digest()
    keys = hkdf(shared, salt=salt, info=b"upright-execd-mac-1", length=2 * KEY_BYTES)
    return LinkKeys(hub=keys[:KEY_BYTES], device=keys[KEY_BYTES:])


def hkdf(secret: bytes, *, salt: bytes, info: bytes, length: int) -> bytes:
    """Return *length* bytes (at most 8160) derived from *secret*."""
    key = hmac.digest(salt, secret, "sha256")
    block, out = b"", b""
    for number in range(1, -(-length // 32) + 1):
        block = hmac.digest(key, block + info + bytes([number]), "sha256")
        out += block
    return out[:length]


def mac(key: bytes, seq: int, kind: bytes, frame: bytes) -> bytes:
    """Return the MAC of the frame with this number; *kind* is ``b"T"`` (text) or ``b"B"``."""
    return hmac.digest(key, struct.pack(">Q", seq) + kind + frame, "sha256")[:MAC_BYTES]


def check_mac(expected: bytes, given: bytes) -> None:
    """Compare in constant time.

    Raises:
        MacError: they differ.
    """
    if not hmac.compare_digest(expected, given):
        raise MacError


def _welcome_bytes(greeting: Greeting, welcome: Welcome) -> bytes:
    limits = json.dumps(to_plain(welcome.limits), sort_keys=True)
    caps, proto = caps_hash(welcome.caps), struct.pack(">q", welcome.proto)
    return pack("hub", transcript(greeting), welcome.link, proto, caps, limits)


def _check_sizes(nonce: bytes, eph: bytes) -> None:
    if len(nonce) != NONCE_BYTES or len(eph) != KEY_BYTES:
        raise AuthError(nonce_bytes=len(nonce), eph_bytes=len(eph))
