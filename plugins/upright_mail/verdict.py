"""Verdict: is a sender who From says? Only our own mail server's word counts (RFC 8601).

Anybody can write an Authentication-Results line. Ours is the topmost one that names our server:
it is put above everything that came in, and our server removes what claims its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from upright_mail.headers import Headers, Mailbox

_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.){0,300})"')
_RESULT: Final = re.compile(r"\s*(?P<method>[a-z0-9-]+)(?:\s*/\s*\d+)?\s*=\s*(?P<result>[a-z]+)")
_PROPERTY: Final = re.compile(r"(?P<name>[a-z]+\.[a-z0-9-]+)\s*=\s*(?P<value>[^\s;]+)")
MAX_LINE_CHARS: Final = 4096
Result = tuple[str, str, dict[str, str]]


class Verdict(StrEnum):
    """What our server found."""

    TRUE = "true"
    FORGED = "forged"
    NONE = "none"


def verdict(headers: Headers, sender: Mailbox, authserv_id: str) -> Verdict:
    """Return our server's verdict on the domain that From names.

    DMARC decides where there is a result; else a DKIM signature, an SPF pass or a sign-in that
    belongs to that very domain.
    """
    line = _ours(headers, authserv_id) if authserv_id else None
    if line is None or len(headers.all("from")) != 1:
        return Verdict.NONE
    results = list(_results(line))
    dmarc = [(result, more) for method, result, more in results if method == "dmarc"]
    if dmarc:
        return _by_dmarc(dmarc, sender.domain)
    if any(_aligned(one, sender) for one in results):
        return Verdict.TRUE
    failed = any(result in {"fail", "softfail", "permerror"} for _, result, _ in results)
    return Verdict.FORGED if failed else Verdict.NONE


def _ours(headers: Headers, authserv_id: str) -> str | None:
    for value in headers.all("authentication-results"):
        plain = _without_comments(value[:MAX_LINE_CHARS]).lower()
        name, _, rest = plain.partition(";")
        if name.split()[:1] == [authserv_id.lower()]:
            return rest
    return None


def _without_comments(value: str) -> str:
    """Leave out comments, which may hold comments, and the quotes of strings."""
    out, depth = list[str](), 0
    value = _QUOTED.sub(lambda hit: re.sub(r"[();]", "", hit[1]), value)
    for character in value:
        if character == "(":
            depth += 1
        elif character == ")" and depth:
            depth -= 1
        elif not depth:
            out.append(character)
    return "".join(out)


def _results(line: str) -> Iterator[Result]:
    for part in line.split(";"):
        if hit := _RESULT.match(part):
            more = {one["name"]: one["value"] for one in _PROPERTY.finditer(part, hit.end())}
            yield hit["method"], hit["result"], more


def _by_dmarc(found: list[tuple[str, dict[str, str]]], domain: str) -> Verdict:
    result, more = found[0]
    if more.get("header.from", domain).rpartition("@")[2] != domain:
        return Verdict.FORGED
    if result == "pass":
        return Verdict.TRUE
    return Verdict.FORGED if result in {"fail", "permerror"} else Verdict.NONE


def _aligned(found: Result, sender: Mailbox) -> bool:
    method, result, more = found
    if result != "pass":
        return False
    if method == "auth":
        return more.get("smtp.auth") == sender.address
    named = {
        "dkim": more.get("header.d") or more.get("header.i", ""),
        "spf": more.get("smtp.mailfrom", ""),
    }.get(method, "")
    return bool(named) and named.rpartition("@")[2] == sender.domain
