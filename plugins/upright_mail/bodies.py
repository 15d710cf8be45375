"""Bodies: what a part of a mail says: flowed lines joined, HTML rendered, quotes marked."""

from __future__ import annotations

import html
import re
from typing import Final

import inscriptis
from inscriptis.css_profiles import CSS_PROFILES
from inscriptis.model.config import ParserConfig

from upright_mail.headers import MIME_TROUBLE

MAX_HTML_CHARS: Final = 1_000_000
MAX_TEXT_CHARS: Final = 200_000
_OPEN, _CLOSE = "\ue000", "\ue001"  # private use: where a quotation begins and ends
_QUOTE_OPEN: Final = re.compile(r"<blockquote\b[^>]{0,2000}>", re.IGNORECASE)
_QUOTE_CLOSE: Final = re.compile(r"</blockquote\s*>", re.IGNORECASE)
_HIDDEN: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(style|script|head|title)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL
)
_TAG: Final = re.compile(r"<[^>]{0,10000}>")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BLANKS: Final = re.compile(r"\n{3,}")
_PLAIN: Final = ParserConfig(css=CSS_PROFILES["strict"].copy())


def tidy(text: str) -> str:
    """Return text with LF line ends, without control characters and blanks at the ends."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = (line.rstrip() for line in _CONTROL.sub("", text).split("\n"))
    return "\n".join(lines).strip()[:MAX_TEXT_CHARS]


def unflowed(text: str, *, delete_space: bool = False) -> str:
    """Join the lines that ``format=flowed`` has cut (RFC 3676)."""
    out, depth, open_ = list[str](), 0, False
    for line in text.replace("\r\n", "\n").split("\n"):
        body = line.lstrip(">")
        now = len(line) - len(body)
        body = body.removeprefix(" ")  # stuffed
        if open_ and now == depth and body != "-- ":
            out[-1] += body
        else:
            out.append((">" * now + " " + body) if now else body)
        depth = now
        open_ = body.endswith(" ") and body != "-- "
        if open_ and delete_space:
            out[-1] = out[-1][:-1]
    return "\n".join(out)


def html_text(source: str) -> str:
    """Return HTML as text; the lines of a quotation begin with ``>``, as they do in plain mail."""
    source = source[:MAX_HTML_CHARS].replace(_OPEN, "").replace(_CLOSE, "")
    marked = _QUOTE_OPEN.sub(f"<blockquote><p>{_OPEN}</p>", _HIDDEN.sub("", source))
    marked = _QUOTE_CLOSE.sub(f"<p>{_CLOSE}</p></blockquote>", marked)
    try:
        text = inscriptis.get_text(_CONTROL.sub("", marked), _PLAIN)
    except (*MIME_TROUBLE, SyntaxError):  # the latter is lxml's
        text = _without_tags(marked)
    return _BLANKS.sub("\n\n", _quoted(text.replace("\xa0", " ")))


def _without_tags(source: str) -> str:
    return html.unescape(_TAG.sub(" ", source))


def _quoted(text: str) -> str:
    out, depth = list[str](), 0
    for line in text.split("\n"):
        bare = line.replace(_OPEN, "").replace(_CLOSE, "")
        depth += line.count(_OPEN)
        if bare.strip() or bare == line:
            out.append(f"{'>' * depth} {bare.strip()}".rstrip() if depth else bare)
        depth = max(0, depth - line.count(_CLOSE))
    return "\n".join(out)
