"""Charsets: bytes become text whatever they are said to be; a label that lies loses nothing.

Order: what is declared (by its alias), UTF-8, a guess, and at last windows-1252 with replacements.
"""

from __future__ import annotations

import base64
import binascii
import quopri
import re
from collections.abc import Iterator
from typing import Final

import charset_normalizer

ALIASES: Final = {
    # what mail programs write, and the codec that reads it; empty: it says nothing
    "x-unknown": "",
    "unknown": "",
    "unknown-8bit": "",
    "x-user-defined": "",
    "default": "",
    "ansi": "cp1252",
    "iso-8859-1": "cp1252",  # the web's own rule: who says the one often writes the other
    "us-ascii": "ascii",
    "cp-850": "cp850",
    "gb2312": "gb18030",  # each holds the one before; names need the largest
    "gb_2312-80": "gb18030",
    "x-gbk": "gb18030",
    "gbk": "gb18030",
    "ks_c_5601": "cp949",
    "ks_c_5601-1987": "cp949",
    "ks_c_5601-1989": "cp949",
    "euc-kr": "cp949",
    "x-windows-949": "cp949",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "x-euc-jp": "euc_jp",
    "big5": "cp950",
    "iso-8859-8-i": "iso-8859-8",
    "iso-8859-8-e": "iso-8859-8",
    "windows-874": "cp874",
    "x-mac-roman": "mac_roman",
    "macintosh": "mac_roman",
    "unicode-1-1-utf-7": "utf-7",
    "utf8mb4": "utf-8",
}
_NO_CHARSETS: Final = frozenset(
    {"unicode_escape", "raw_unicode_escape", "idna", "punycode", "undefined", "mbcs", "oem"}
)
_GUESSED: Final = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "koi8_r"),
    *("gb18030", "big5", "cp949", "cp932", "euc_jp", "iso2022_jp"),
)
SAMPLE_BYTES: Final = 16_384
SPARSE: Final = 0.3  # Latin text has few bytes above 127; Cyrillic and East Asian text has many
SHORT_BYTES: Final = 400  # too little for statistics

_WORD: Final = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?(.{0,1000}?)\?=", re.DOTALL)


def decode(raw: bytes, declared: str = "") -> str:
    """Return the text of *raw*."""
    for name in (declared, "utf-8"):
        text = _strictly(raw, name)
        if text is not None:
            return text
    return _guessed(raw)


def _strictly(raw: bytes, name: str) -> str | None:
    name = name.strip().strip("\"'").lower()
    name = ALIASES.get(name, name)
    if not name or name.replace("-", "_") in _NO_CHARSETS:
        return None
    try:
        return raw.decode(name)
    except (LookupError, ValueError):  # UnicodeError is one
        return None


def _guessed(raw: bytes) -> str:
    sample = raw[:SAMPLE_BYTES]
    high = sum(byte > 127 for byte in sample)
    if len(sample) > SHORT_BYTES or high > SPARSE * len(sample):
        best = charset_normalizer.from_bytes(sample, cp_isolation=list(_GUESSED)).best()
        if best is not None:
            return raw.decode(best.encoding, errors="replace")
    return raw.decode("cp1252", errors="replace")


def header_text(value: str) -> str:
    """Return a header's value as people read it: unfolded, encoded words decoded (RFC 2047).

    *value* may hold surrogates, as the standard library's parser leaves bytes above 127.
    """
    value = re.sub(r"\r?\n(?=[ \t])", "", value).replace("\r", " ").replace("\n", " ")
    parts, end = list[str](), 0
    for text, begin, stop in _words(value):
        between = value[end:begin]
        if not (parts and between.isspace()):  # blanks between two encoded words are no text
            parts.append(plain_text(between))
        parts.append(text)
        end = stop
    parts.append(plain_text(value[end:]))
    return "".join(parts).strip()


def plain_text(value: str) -> str:
    """Return text whose bytes above 127 stand in it as surrogates."""
    if value.isascii():
        return value
    return decode(value.encode("utf-8", "surrogateescape"))


def _words(value: str) -> Iterator[tuple[str, int, int]]:
    """Yield runs of encoded words; a character may be cut between two of one charset."""
    charset, raw, begin, end = "", b"", 0, -1
    for found in _WORD.finditer(value):
        follows = end >= 0 and (found.start() == end or value[end : found.start()].isspace())
        if end >= 0 and not (follows and found[1].lower() == charset):
            yield decode(raw, charset), begin, end
            raw = b""
        if not raw:
            begin = found.start()
        charset, end = found[1].partition("*")[0].lower(), found.end()
        raw += _word_bytes(found[2], found[3])
    if end >= 0:
        yield decode(raw, charset), begin, end


def _word_bytes(encoding: str, text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    if encoding in "qQ":
        return quopri.decodestring(raw.replace(b"_", b" "), header=False)
    try:
        return base64.b64decode(raw + b"=" * (-len(raw) % 4))
    except (binascii.Error, ValueError):
        return raw
