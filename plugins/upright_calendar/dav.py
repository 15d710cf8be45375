"""DAV: what is asked of a CalDAV server and what it answers, as XML in and values out.

Sources: RFC 4918 (207), RFC 4791 (calendars), RFC 6578 (sync-collection), RFC 6638 (addresses).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote, urlsplit
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

DAV: Final = "{DAV:}"
CAL: Final = "{urn:ietf:params:xml:ns:caldav}"
SERVER: Final = "{http://calendarserver.org/ns/}"
_PREFIXES: Final = {DAV: "d", CAL: "c", SERVER: "s"}
_SPACES: Final = " ".join(f'xmlns:{short}="{space[1:-1]}"' for space, short in _PREFIXES.items())


class DavError(ValueError):
    """An answer is no multistatus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One response of a multistatus: its path, its status, the properties that were found."""

    path: str
    status: int
    found: dict[str, Element] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a property's text; empty when it is not there."""
        element = self.found.get(name)
        return (element.text or "").strip() if element is not None else ""

    def href(self, name: str) -> str:
        """Return the first address in a property."""
        return next(self.hrefs(name), "")

    def hrefs(self, name: str) -> Iterator[str]:
        """Yield the addresses in a property."""
        element = self.found.get(name)
        for each in element.iter(f"{DAV}href") if element is not None else ():
            if each.text and each.text.strip():
                yield each.text.strip()

    def has(self, name: str, child: str) -> bool:
        """Tell whether a property has a child of a name, as in ``resourcetype``."""
        element = self.found.get(name)
        return element is not None and element.find(child) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Multistatus:
    """All responses, and the sync token where there is one."""

    resources: tuple[Resource, ...]
    token: str = ""


def propfind(names: Iterable[str]) -> bytes:
    """Ask for properties."""
    return _document("d:propfind", f"<d:prop>{_names(names)}</d:prop>")


def sync_collection(token: str) -> bytes:
    """Ask what changed since a token; an empty one asks for everything."""
    asked = f"<d:sync-token>{escape(token)}</d:sync-token><d:sync-level>1</d:sync-level>"
    return _document("d:sync-collection", f"{asked}<d:prop><d:getetag/></d:prop>")


def multiget(paths: Iterable[str]) -> bytes:
    """Ask for the data of some resources."""
    hrefs = "".join(f"<d:href>{escape(encoded(path))}</d:href>" for path in paths)
    wanted = "<d:prop><d:getetag/><c:calendar-data/></d:prop>"
    return _document("c:calendar-multiget", wanted + hrefs)


def read(data: bytes) -> Multistatus:
    """Read a multistatus.

    Raises:
        DavError: it is none, or tries what XML from outside may not.
    """
    try:
        root = fromstring(data, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        problem = f"the answer is no XML that may be read: {type(error).__name__}"
        raise DavError(problem) from error
    if root.tag != f"{DAV}multistatus":
        problem = f"the answer is no multistatus: {root.tag[:60]}"
        raise DavError(problem)
    resources = tuple(_resource(each) for each in root.findall(f"{DAV}response"))
    return Multistatus(resources=resources, token=(root.findtext(f"{DAV}sync-token") or "").strip())


def names_sync_token(data: bytes) -> bool:
    """Tell whether an error says that the token is not valid any more (RFC 6578, 3.2)."""
    return b"valid-sync-token" in data[:10_000]


def path_of(href: str) -> str:
    """Return the path of an address, so that two spellings of it compare equal."""
    return unquote(urlsplit(href).path)


def encoded(path: str) -> str:
    """Return a path as it stands in an address; the reverse of :func:`path_of`."""
    return quote(path, safe="/:@!$&'()*+,;=~")


def _resource(response: Element) -> Resource:
    found: dict[str, Element] = {}
    for propstat in response.findall(f"{DAV}propstat"):
        if _status(propstat.findtext(f"{DAV}status")) == 200:
            prop = propstat.find(f"{DAV}prop")
            found |= {each.tag: each for each in (prop if prop is not None else ())}
    href = (response.findtext(f"{DAV}href") or "").strip()
    status = _status(response.findtext(f"{DAV}status"))
    return Resource(path=path_of(href), status=status or 200, found=found)


def _status(line: str | None) -> int:
    parts = (line or "").split()
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0


def _document(name: str, inner: str) -> bytes:
    return f'<?xml version="1.0" encoding="utf-8"?><{name} {_SPACES}>{inner}</{name}>'.encode()


def _names(names: Iterable[str]) -> str:
    return "".join(f"<{_short(name)}/>" for name in names)


def _short(name: str) -> str:
    space, _, local = name.partition("}")
    return f"{_PREFIXES[space + '}']}:{local}"
