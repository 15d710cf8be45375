"""Material: text that instructs nobody, in a block that it can neither close nor imitate (B14.1).

A block is one line of JSON between two tags. Of a text no character stands in it that ends a
line, hides, turns the direction of reading, or looks like an angle bracket: these are written as
JSON escapes, which a reader takes back to what they were.
"""

from __future__ import annotations

import json
import re
from typing import Final

from upright.core.mandate import Trust

TOOL_RESULT: Final = "tool result"
_BRACKETS: Final = "<>\u02c2\u02c3\u1433\u1438\u2039\u203a\u2329\u232a\u276c-\u2771\u27e8\u27e9"
_WIDE_BRACKETS: Final = "\u29fc\u29fd\u3008\u3009\ufe3f\ufe40\ufe64\ufe65\uff1c\uff1e"
_LINES_AND_CONTROLS: Final = "\u007f-\u009f\u2028\u2029"
_HIDDEN: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
)
_HIDDEN_FAR: Final = "\U000e0000-\U000e0fff"  # tags, and more selectors than any glyph has
_UNSAFE: Final = re.compile(
    f"[{_BRACKETS}{_WIDE_BRACKETS}{_LINES_AND_CONTROLS}{_HIDDEN}{_HIDDEN_FAR}]"
)
_CONTROLS: Final = "\u0000-\u0008\u000b\u000c\u000e-\u001f"  # JSON escapes them by itself
_UNSEEN: Final = re.compile(f"[{_CONTROLS}{_LINES_AND_CONTROLS}{_HIDDEN}{_HIDDEN_FAR}]")
_FAR: Final = 0x10000


def escaped(value: object) -> str:
    """Write JSON of one line that can stand inside a block."""
    return tamed(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def tamed(text: str) -> str:
    """Escape in JSON that is written already what must not stand in a block; twice is as once."""
    return _UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    point = ord(found.group())
    if point < _FAR:
        return f"\\u{point:04x}"
    high, low = divmod(point - _FAR, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def visible(text: str) -> str:
    """Write what can't be seen, or turns the direction of reading, as escapes, for people."""
    return _UNSEEN.sub(_escape, text)


def block(label: str, trust: Trust, value: object) -> str:
    """Wrap material: what it is, how far it is trusted, and the JSON of it."""
    return f'<material of="{label}" trust="{trust.label}">\n{escaped(value)}\n</material>'


def tool_result(text: str) -> str:
    """Wrap the JSON that a tool has answered: whoever speaks in it, it is material."""
    return f'<material of="{TOOL_RESULT}">\n{tamed(text)}\n</material>'
