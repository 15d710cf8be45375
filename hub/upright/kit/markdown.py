"""Markdown: one source text, read once, written in the dialect of each service.

What models write is read: headings, paragraphs, fences, lists, quotes, tables, rules; strong, em,
strike, code, links. What is not understood stays as it stands; no text raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

FENCE: Final = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)")
_HEADING: Final = re.compile(r" {0,3}(?P<level>#{1,6})[ \t]+(?P<text>.*?)[ \t]*#*[ \t]*")
_RULE: Final = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_ITEM: Final = re.compile(r"(?P<indent>[ \t]*)(?P<mark>[-*+]|\d{1,9}[.)])[ \t]+(?P<text>.*)")
_QUOTE: Final = re.compile(r" {0,3}> ?(?P<text>.*)")
_TABLE: Final = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)+")
_INLINE: Final = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`{1,8})(?P<code>[^`](?:.{0,2000}?[^`])?)(?P=ticks)(?!`)"
    r"|!?\[(?P<label>[^\]\n]{1,500})\]\((?P<url>[^\s()<>]{1,2000}(?:\([^\s()<>]*\))?)\)"
    r"|<(?P<auto>https?://[^\s<>]{1,2000})>"
    r"|(?P<bare>https?://[^\s<>()\[\]]{1,2000})"
    r"|\*\*(?P<strong>[^\s*](?:.{0,1000}?[^\s])?)\*\*"
    r"|(?<!\w)__(?P<strong2>[^\s_](?:.{0,1000}?[^\s])?)__(?!\w)"
    r"|~~(?P<strike>[^\s~](?:.{0,1000}?[^\s~])?)~~"
    r"|\*(?P<em>[^\s*](?:[^*\n]{0,1000}?[^\s*])?)\*"
    r"|(?<![\w])_(?P<em2>[^\s_](?:[^_\n]{0,1000}?[^\s_])?)_(?!\w)",
    re.DOTALL,
)
_MAX_DEPTH: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of a list: how deep, its number (empty: a bullet), and what it says, rendered."""

    depth: int
    number: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How each part is written. All but ``text`` and ``code`` are given what is written already.

    ``link`` gets a label and an address; ``fence`` gets the language and the bare code; ``join``
    puts the blocks together.
    """

    text: Callable[[str], str]
    code: Callable[[str], str]
    strong: Callable[[str], str]
    em: Callable[[str], str]
    strike: Callable[[str], str]
    link: Callable[[str, str], str]
    fence: Callable[[str, str], str]
    heading: Callable[[int, str], str]
    paragraph: Callable[[str], str]
    quote: Callable[[str], str]
    items: Callable[[Sequence[Item]], str]
    rule: str
    join: str


def render(markdown: str, dialect: Dialect) -> str:
    """Write a text in a dialect."""
    return dialect.join.join(_blocks(markdown.replace("\r\n", "\n").split("\n"), dialect, 0))


def inline(text: str, dialect: Dialect, depth: int = 0) -> str:
    """Write what stands inside a block."""
    out, at = list[str](), 0
    for hit in _INLINE.finditer(text):
        out += (dialect.text(text[at : hit.start()]), _span(hit, dialect, depth))
        at = hit.end()
    return "".join((*out, dialect.text(text[at:])))


def _span(hit: re.Match[str], dialect: Dialect, depth: int) -> str:
    def inside(text: str) -> str:
        return inline(text, dialect, depth + 1) if depth < _MAX_DEPTH else dialect.text(text)

    if hit["escaped"]:
        return dialect.text(hit["escaped"])
    if hit["code"]:
        return dialect.code(hit["code"].strip(" ") or hit["code"])
    if url := hit["auto"] or hit["bare"]:
        return _address(url, dialect)
    if hit["label"]:
        return dialect.link(inside(hit["label"]), hit["url"])
    if strong := hit["strong"] or hit["strong2"]:
        return dialect.strong(inside(strong))
    em = hit["em"] or hit["em2"]
    return dialect.em(inside(em)) if em else dialect.strike(inside(hit["strike"]))


def _address(url: str, dialect: Dialect) -> str:
    bare = url.rstrip(".,;:!?'\"*_")  # a sentence's end belongs to the sentence
    return dialect.link(dialect.text(bare), bare) + dialect.text(url[len(bare) :])


def _blocks(lines: Sequence[str], dialect: Dialect, depth: int) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        end = at + 1
        if not line.strip():
            pass
        elif fence := FENCE.fullmatch(line):
            end = fence_end(lines, at)
            closed = end > at + 1 and _closes(lines[end - 1], fence["mark"])
            body = lines[at + 1 : end - 1 if closed else end]
            yield dialect.fence(fence["info"].strip().partition(" ")[0], "\n".join(body))
        elif heading := _HEADING.fullmatch(line):
            text = inline(heading["text"], dialect)
            yield dialect.heading(len(heading["level"]), text)
        elif _RULE.fullmatch(line):
            yield dialect.rule
        elif _QUOTE.fullmatch(line) and depth < _MAX_DEPTH:
            end = _while(lines, at, lambda one: _QUOTE.fullmatch(one) is not None)
            inner = [_QUOTE.fullmatch(one) for one in lines[at:end]]
            said = [hit["text"] for hit in inner if hit]
            yield dialect.quote(dialect.join.join(_blocks(said, dialect, depth + 1)))
        elif _ITEM.fullmatch(line):
            end = _while(lines, at, lambda one: bool(one.strip()) and not FENCE.fullmatch(one))
            yield dialect.items(tuple(_items(lines[at:end], dialect)))
        elif _is_table(lines, at):
            end = _while(lines, at, lambda one: "|" in one)
            yield dialect.fence("", "\n".join(lines[at:end]))
        else:
            end = _while(lines, at, lambda one: not _begins(one))
            yield dialect.paragraph(inline("\n".join(lines[at:end]).strip(), dialect))
        at = end


def _while(lines: Sequence[str], at: int, more: Callable[[str], bool]) -> int:
    """Return where the block that begins at *at* ends: the first line is its own in any case."""
    end = at + 1
    while end < len(lines) and more(lines[end]):
        end += 1
    return end


def _begins(line: str) -> bool:
    """Tell whether a line ends the paragraph before it."""
    starts = (FENCE, _HEADING, _QUOTE, _ITEM)
    return not line.strip() or any(one.fullmatch(line) for one in starts)


def _is_table(lines: Sequence[str], at: int) -> bool:
    return "|" in lines[at] and at + 1 < len(lines) and _TABLE.fullmatch(lines[at + 1]) is not None


def fence_end(lines: Sequence[str], at: int) -> int:
    """Return the index after the fence that opens at *at*; an open one goes to the end."""
    opened = FENCE.fullmatch(lines[at])
    for index in range(at + 1, len(lines)):
        if opened and _closes(lines[index], opened["mark"]):
            return index + 1
    return len(lines)


def _closes(line: str, mark: str) -> bool:
    hit = FENCE.fullmatch(line)
    return hit is not None and hit["mark"].startswith(mark) and not hit["info"].strip()


def _items(lines: Sequence[str], dialect: Dialect) -> Iterator[Item]:
    starts = [n for n, line in enumerate(lines) if _ITEM.fullmatch(line)]
    indents = list[int]()
    for begin, end in pairwise((*starts, len(lines))):
        hit = _ITEM.fullmatch(lines[begin])
        if hit is None:
            continue
        wide = len(hit["indent"].expandtabs(4))
        while indents and indents[-1] > wide:
            indents.pop()
        if not indents or indents[-1] < wide:
            indents.append(wide)
        text = "\n".join((hit["text"], *(line.strip() for line in lines[begin + 1 : end])))
        number = hit["mark"].rstrip(".)") if hit["mark"][0].isdigit() else ""
        yield Item(depth=len(indents) - 1, number=number, text=inline(text, dialect))
