"""Cache: what a provider's prompt cache would have held, by the longest common prefix in bytes.

A prompt is the tools and then the messages, each as JSON; earlier prompts of the same
conversation count, all of them at message boundaries, the latest one byte by byte. Four bytes are
taken for a token.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

BYTES_A_TOKEN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt as bytes, in the pieces that a later one may share."""

    pieces: tuple[bytes, ...]

    def whole(self) -> bytes:
        """Return all of it."""
        return b"".join(self.pieces)

    def digest(self) -> str:
        """Return its SHA-256 in hexadecimal digits."""
        return hashlib.sha256(self.whole()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """How much of a prompt was seen before. ``bust``: the one before it is not its prefix."""

    prompt_bytes: int
    cached_bytes: int
    bust: bool

    @property
    def prompt_tokens(self) -> int:
        """Return the prompt's size in tokens."""
        return tokens(self.prompt_bytes)

    @property
    def cached_tokens(self) -> int:
        """Return how many whole tokens were seen before."""
        return self.cached_bytes // BYTES_A_TOKEN


@dataclass(slots=True)
class _Conversation:
    latest: bytes = b""
    boundaries: set[bytes] = field(default_factory=set)


class PromptCache:
    """Remembers the prompts of each conversation."""

    def __init__(self) -> None:
        self._conversations: dict[str, _Conversation] = {}

    def look_up(self, conversation: str, prompt: Prompt) -> Hit:
        """Say how much of a prompt was seen, and remember it."""
        known = self._conversations.setdefault(conversation, _Conversation())
        whole = prompt.whole()
        common = _common_bytes(known.latest, whole)
        digest, size = hashlib.sha256(), 0
        for piece in prompt.pieces:
            digest.update(piece)
            size += len(piece)
            boundary = digest.digest()
            if boundary in known.boundaries:
                common = max(common, size)
            known.boundaries.add(boundary)
        bust = not whole.startswith(known.latest)
        known.latest = whole
        return Hit(prompt_bytes=len(whole), cached_bytes=common, bust=bust)


def prompt_of(body: Mapping[str, Any]) -> Prompt:
    """Write a request's prompt: the tools, then each message, keys in the order given."""
    parts = [body.get("tools") or [], *(body.get("messages") or ())]
    return Prompt(pieces=tuple(_written(part) for part in parts))


def conversation_of(body: Mapping[str, Any], session: str) -> str:
    """Name the conversation: by the client's session, or else by how it begins."""
    if session:
        return session
    roles = {"system", "user"}
    messages = itertools.takewhile(lambda m: m.get("role") in roles, body.get("messages") or ())
    beginning = list(messages)[:2]
    return hashlib.sha256(_written(beginning)).hexdigest()


def tokens(size_bytes: int) -> int:
    """Return how many tokens some bytes are, rounded up."""
    return -(-size_bytes // BYTES_A_TOKEN)


def _common_bytes(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts share at their beginning, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if other.startswith(one[:middle]) else (low, middle - 1)
    return low


def _written(part: object) -> bytes:
    text = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass") + b"\n"
