"""Lines: iCalendar bytes as a tree of components; what can't be read costs only itself.

Source: RFC 5545, sections 3.1 (folding, parameters) and 3.6 (components).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

MAX_DEPTH: Final = 8
MAX_LINES: Final = 400_000
_FOLD: Final = re.compile(rb"(?:\r\n|\n|\r)[ \t]")
_PARAMETER: Final = re.compile(r';([^=;:,"]+)=((?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*)')
_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_ESCAPED: Final = re.compile(r"\\([\\;,nN:])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One property: its name in upper case, its parameters (first value each), its raw value."""

    name: str
    params: Mapping[str, str]
    value: str

    @property
    def text(self) -> str:
        """Return the value as TEXT, without its escapes."""
        return unescape(self.value)


@dataclass(slots=True, kw_only=True)
class Component:
    """What stands between BEGIN and END; ``broken`` says which of its lines are none."""

    name: str
    lines: list[Line] = field(default_factory=list)
    parts: list[Component] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Line]:
        """Yield the properties of a name, in their order."""
        return (line for line in self.lines if line.name == name)

    def first(self, name: str) -> Line | None:
        """Return the first property of a name."""
        return next(self.all(name), None)

    def text(self, name: str) -> str:
        """Return a property's text; empty when it is not there."""
        line = self.first(name)
        return line.text.strip() if line else ""

    def within(self, name: str) -> Iterator[Component]:
        """Yield the parts of a name, in their order."""
        return (part for part in self.parts if part.name == name)


def tree(data: bytes) -> Component:
    """Read bytes; what is returned is a nameless root, its parts are the calendars.

    Never raises: a line that is none is noted in the component it stands in, a component that is
    not closed ends with the one around it.
    """
    root = Component(name="")
    open_ = [root]
    for number, raw in enumerate(_unfolded(data)):
        if number == MAX_LINES:
            root.broken.append(f"more than {MAX_LINES} lines: the rest is not read")
            break
        line = _line(raw)
        if line is None:
            open_[-1].broken.append(f"no property: {raw[:60]!r}")
        elif line.name == "BEGIN":
            _begin(open_, line.value.strip().upper())
        elif line.name == "END":
            _end(open_, line.value.strip().upper())
        else:
            open_[-1].lines.append(line)
    for part in open_[1:]:  # the text ends too soon
        part.broken.append(f"no END:{part.name}")
    return root


def unescape(value: str) -> str:
    """Undo the escapes of TEXT."""
    return _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)


def escape(text: str) -> str:
    """Escape TEXT, so that nothing in it ends a line or a list."""
    clean = text.replace("\r\n", "\n").replace("\r", "\n").replace("\\", "\\\\")
    return clean.replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")


def _begin(open_: list[Component], name: str) -> None:
    part = Component(name=name)
    if len(open_) > MAX_DEPTH:
        open_[-1].broken.append(f"{name} is nested too deep")
    else:
        open_[-1].parts.append(part)
    open_.append(part)


def _end(open_: list[Component], name: str) -> None:
    if not any(part.name == name for part in open_[1:]):
        open_[-1].broken.append(f"END:{name[:40]} without its BEGIN")
        return
    while (closed := open_.pop()).name != name:
        closed.broken.append(f"no END:{closed.name}")


def _unfolded(data: bytes) -> Iterator[str]:
    """Unfold before decoding: a fold may part the bytes of one character."""
    text = _decoded(_FOLD.sub(b"", data.removeprefix(b"\xef\xbb\xbf")))
    for raw in re.split(r"\r\n|\n|\r", text):
        if raw.strip():
            yield raw


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")  # what old programs write and call nothing


def _line(raw: str) -> Line | None:
    name = _NAME.match(raw)
    if name is None:
        return None
    at, params = name.end(), dict[str, str]()
    while found := _PARAMETER.match(raw, at):
        params.setdefault(found[1].strip().upper(), _value(found[2]))
        at = found.end()
    if raw[at : at + 1] != ":":
        colon = raw.find(":", at)  # a parameter that is none: what follows the colon is kept
        if colon < 0:
            return None
        at = colon
    return Line(name=name[0].upper(), params=params, value=raw[at + 1 :])


def _value(raw: str) -> str:
    """Return a parameter's first value, its quotes and RFC 6868's escapes undone."""
    one = raw[1:].partition('"')[0] if raw.startswith('"') else raw.partition(",")[0]
    return one.replace("^n", "\n").replace("^'", '"').replace("^^", "^")
