"""Tail: the end of something long, read as it comes and never held whole."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Final

KEPT_BYTES: Final = 65_536
MOST_BYTES: Final = 8 * 1024 * 1024  # what is read to get at the end; then it is given up


async def tail(chunks: AsyncIterable[bytes]) -> str:
    """Return the end of a text: whole characters, as far as its bytes are UTF-8, and no NUL."""
    kept, size = b"", 0
    async for chunk in chunks:
        kept, size = (kept + chunk)[-KEPT_BYTES:], size + len(chunk)
        if size > MOST_BYTES:
            break
    return kept.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
