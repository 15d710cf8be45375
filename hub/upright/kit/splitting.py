"""Splitting: a Markdown text as parts that each fit, in order, nothing lost (B15.4).

Cut between paragraphs first, then at lines, then at blanks, and inside a word only when a word is
longer than a part. A fence that is cut is closed, and opened anew in the next part, in its limit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

from upright.kit.markdown import FENCE, fence_end

Measure = Callable[[str], int]
"""How long a piece of the source is once it is written for the service."""
_JOINER: Final = "\N{ZERO WIDTH JOINER}"
_LEAST_CHARS: Final = 8  # a fence that leaves less room is none


def utf16_units(text: str) -> int:
    """Return the length that Telegram counts: an emoji is two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf8_bytes(text: str) -> int:
    """Return the length in bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def split(text: str, limit: int, measure: Measure = len) -> tuple[str, ...]:
    """Return the parts; none for a text of blanks.

    Raises:
        ValueError: not even one character fits.
    """
    parts, now = list[str](), ""
    for block in _blocks(text.replace("\r\n", "\n")):
        joined = f"{now}\n\n{block}" if now else block
        if measure(joined) <= limit:
            now = joined
            continue
        if now:
            parts.append(now)
        *whole, now = _pieces(block, limit, measure)
        parts += whole
    return (*parts, now) if now else tuple(parts)


def _blocks(text: str) -> Iterator[str]:
    """Yield what blank lines part; a fence is one block whatever it holds."""
    lines, begin, at = text.split("\n"), 0, 0
    while at < len(lines):
        if FENCE.fullmatch(lines[at]):
            yield from _block(lines[begin:at])
            end = fence_end(lines, at)
            yield "\n".join(lines[at:end]).rstrip()
            begin = at = end
        elif not lines[at].strip():
            yield from _block(lines[begin:at])
            begin = at = at + 1
        else:
            at += 1
    yield from _block(lines[begin:])


def _block(lines: list[str]) -> Iterator[str]:
    if any(line.strip() for line in lines):
        yield "\n".join(lines).rstrip()


def _pieces(block: str, limit: int, measure: Measure) -> list[str]:
    """Cut one block; the last piece may take more behind it."""
    if measure(block) <= limit:
        return [block]
    first, _, rest = block.partition("\n")
    hit = FENCE.fullmatch(first)
    if hit is None:
        return list(_cut(block, lambda piece: measure(piece) <= limit))
    mark, info = hit["mark"], hit["info"].strip()
    body = rest.removesuffix(mark).removesuffix("\n") if rest.endswith(f"\n{mark}") else rest
    for opening, inside in ((f"{mark}{info}", body), (mark, f"{info}\n{body}")):
        if measure(f"{opening}\n{inside[:_LEAST_CHARS]}\n{mark}") <= limit:
            return _fenced(inside, (opening, mark), lambda piece: measure(piece) <= limit)
    return list(_cut(block, lambda piece: measure(piece) <= limit))  # more fence than text


def _fenced(body: str, marks: tuple[str, str], fits: Callable[[str], bool]) -> list[str]:
    def whole(piece: str) -> str:
        return f"{marks[0]}\n{piece}\n{marks[1]}"

    return [whole(piece) for piece in _cut(body, lambda piece: fits(whole(piece)))]


def _cut(text: str, fits: Callable[[str], bool]) -> Iterator[str]:
    while not fits(text):
        size = _most(text, fits)
        at = _boundary(text, size)
        yield text[:at].rstrip("\n ")
        text = text[at:].lstrip("\n")
    if text:
        yield text


def _most(text: str, fits: Callable[[str], bool]) -> int:
    """Return a length that fits, by halving: what is rendered need not grow evenly."""
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle)
    if low == 0:
        raise ValueError("The limit leaves no room for a single character")
    return low


def _boundary(text: str, size: int) -> int:
    for separator in ("\n", " "):
        at = text.rfind(separator, size // 2, size)
        if at > 0:
            return at + 1
    at = size
    while at > 1 and _belongs(text[at - 1], text[at]):
        at -= 1
    return at if at > 1 else size


def _belongs(before: str, after: str) -> bool:
    """Tell whether two characters are one to the eye: an accent, or an emoji of several."""
    if _JOINER in {before, after} or unicodedata.combining(after):
        return True
    return "\N{VARIATION SELECTOR-1}" <= after <= "\N{VARIATION SELECTOR-16}"
