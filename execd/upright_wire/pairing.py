"""Pairing: commit, reveal, compare; pure, with randomness and signatures passed in (E1.1-E1.3).

The device commits to everything that it will reveal before it sees the hub's nonce, so nobody in
between can search for a nonce that makes both screens show the same digits.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from upright_wire.errors import AuthError
from upright_wire.frames import (
    Challenge,
    PairCommit,
    PairOffer,
    PairPending,
    PairResult,
    PairResume,
    PairReveal,
)
from upright_wire.handshake import KEY_BYTES, NONCE_BYTES, Sign, Verify, caps_hash, key_id, pack

DOMAIN: Final = b"upright-execd-pair-1"
ALPHABET: Final = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, no words
CODE_LETTERS: Final = 8
REQUEST_TTL_MS: Final = 10 * 60 * 1000
MAX_WRONG_GUESSES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The whole conversation up to the reveal."""

    challenge: Challenge
    commit: PairCommit
    offer: PairOffer
    reveal: PairReveal


# ------------------------------------------------------------------ codes and digits
def draw_code(below: Callable[[int], int]) -> str:
    """Return a new code; ``below(n)`` gives a random number from 0 to n - 1, each as likely."""
    return "".join(ALPHABET[below(len(ALPHABET))] for _ in range(CODE_LETTERS))


def read_code(text: str) -> str | None:
    """Return the code that a person typed (any case, dashes and spaces); None: it is no code."""
    letters = "".join(text.upper().replace("-", " ").split())
    is_code = text.isascii() and len(letters) == CODE_LETTERS and set(letters) <= set(ALPHABET)
    return letters if is_code else None


def show_code(code: str) -> str:
    """Return a code as people read it: two groups of four."""
    return f"{code[:4]}-{code[4:]}"


def is_same_code(one: str, other: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def digits(opened: Opened) -> str:
    """Return the 6 digits that both sides show for comparison."""
    number = int.from_bytes(hashlib.sha256(pack("digits", transcript(opened))).digest())
    return f"{number % 10**6:06d}"


# ------------------------------------------------------------------ the transcript
def commitment(reveal: PairReveal) -> bytes:
    """Return the hash that binds the device to everything in its reveal but the signature."""
    return hashlib.sha256(pack(DOMAIN, "commit", _revealed(reveal))).digest()


def transcript(opened: Opened) -> bytes:
    """Return the bytes that stand for the whole opened conversation."""
    challenge, offer = opened.challenge, opened.offer
    return pack(
        DOMAIN,
        challenge.hub_id,
        challenge.hub_key_id,
        challenge.nonce,
        challenge.eph,
        opened.commit.commitment,
        offer.hub_key,
        offer.nonce,
        _revealed(opened.reveal),
    )


def request_hash(opened: Opened) -> str:
    """Return the SHA-256 that an approval binds: another request has another one."""
    return hashlib.sha256(transcript(opened)).hexdigest()


def check_opened(opened: Opened, verify: Verify) -> None:
    """Check, on the hub, that the device revealed what it committed to, and holds its key.

    Raises:
        AuthError: it did not, or does not.
    """
    reveal = opened.reveal
    if len(reveal.device_key) != KEY_BYTES or len(reveal.nonce) != NONCE_BYTES:
        raise AuthError(pairing="malformed")
    if not hmac.compare_digest(commitment(reveal), opened.commit.commitment):
        raise AuthError(pairing="not what was committed to")
    if not verify(reveal.device_key, reveal.sig, pack("device", transcript(opened))):
        raise AuthError(pairing="the device does not hold this key")


def check_offer(challenge: Challenge, offer: PairOffer) -> None:
    """Check, on the device, that the offered key is the one that the challenge named.

    Raises:
        AuthError: it is not.
    """
    if len(offer.nonce) != NONCE_BYTES or key_id(offer.hub_key) != challenge.hub_key_id:
        raise AuthError(pairing="the hub offers another key than it named")


def sign_reveal(opened: Opened, sign: Sign) -> PairReveal:
    """Return the reveal with the device's signature over the transcript."""
    return replace(opened.reveal, sig=sign(pack("device", transcript(opened))))


# ------------------------------------------------------------------ what follows
def pending_bytes(pending: PairPending, bound_hash: str) -> bytes:
    """Return what the hub signs when it says that it waits; *bound_hash* is the request's hash."""
    expiry = struct.pack(">q", pending.expires_ms)
    return pack(DOMAIN, "pending", bound_hash, pending.request, pending.code, expiry)


def result_bytes(result: PairResult, bound_hash: str) -> bytes:
    """Return what the hub signs when it gives the decision."""
    caps = caps_hash(result.caps)
    verdict, device = result.verdict.value, result.device_id
    return pack(DOMAIN, "result", bound_hash, result.request, verdict, device, caps)


def resume_bytes(challenge: Challenge, resume: PairResume) -> bytes:
    """Return what a device signs when it comes back to its own request on a new socket."""
    return pack(
        DOMAIN, "resume", challenge.hub_id, challenge.nonce, resume.request, resume.device_key
    )


def check_signed(key: bytes, signature: bytes, signed: bytes, verify: Verify) -> None:
    """Check one of the three above.

    Raises:
        AuthError: the signature is another's, or of something else.
    """
    if not verify(key, signature, signed):
        raise AuthError(pairing="bad signature")


def _revealed(reveal: PairReveal) -> bytes:
    facts = reveal.facts
    return pack(
        reveal.device_key,
        reveal.nonce,
        reveal.host,
        caps_hash(reveal.caps),
        pack(facts.hostname, facts.system, facts.user, facts.version),
    )
