"""Nearby: pair with a hub of one's own on this machine, by its token instead of a person (E1.6).

Who can read the hub's token file could type the approval, too: the file is the same user's and
nobody else's, or it counts for nothing. It is read once, sent to this machine only, and not kept.
The digits are compared here as a person would: the request that is approved is this one.
"""

from __future__ import annotations

import json
import os
import stat
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from upright_execd.address import HubAddress, is_loopback
from upright_execd.pairing import PairingError, Shown

MAX_TOKEN_BYTES: Final = 4096
MAX_ANSWER_BYTES: Final = 65_536
ANSWER_S: Final = 5.0


def read_token(path: Path) -> str:
    """Return what the hub's token file holds.

    Raises:
        PairingError: it can't be read, or others can read or change it, too.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        sentence = f"Can't read the hub's token in {path}: {error.strerror}."
        raise PairingError(sentence) from error
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        is_private = stat.S_ISREG(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
        if not is_private or found.st_uid != os.geteuid():
            sentence = f"{path} must be a file of yours that nobody else can read."
            raise PairingError(sentence, advice=f"chmod 600 {path}")
        token = file.read(MAX_TOKEN_BYTES).strip()
    if not token or not all(0x21 <= each <= 0x7E for each in token):
        sentence = f"{path} does not hold a hub's token."
        raise PairingError(sentence)
    return token.decode("ascii")


def check_here(address: HubAddress) -> None:
    """Refuse a hub that is elsewhere: its token goes nowhere but to this machine.

    Raises:
        PairingError: it is not known to be here without asking anybody.
    """
    split = urlsplit(address.url)
    if split.scheme != "ws" or not is_loopback(split.hostname or ""):
        sentence = f"{address.host} is not on this machine: a person must approve it there."
        raise PairingError(sentence)


def approve(address: HubAddress, token: str, shown: Shown) -> None:
    """Approve at the hub what it has just shown here, if it shows the same there. Blocks.

    Raises:
        PairingError: the digits differ, the hub refuses, or does not answer.
    """
    path = f"/v1/pairings/{quote(shown.code, safe='')}"
    seen = _ask(address, token, path)
    if seen.get("digits") != shown.digits:
        sentence = "The digits differ: somebody stands between execd and the hub."
        raise PairingError(sentence, advice="Nothing was approved.")
    body = json.dumps({"bound_hash": seen.get("bound_hash")}).encode()
    _ask(address, token, f"{path}/approve", body)


def _ask(address: HubAddress, token: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    """Get an object from the hub; with a body, post that."""
    split = urlsplit(address.url)
    line = HTTPConnection(split.hostname or "", split.port or 80, timeout=ANSWER_S)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        line.request("GET" if body is None else "POST", path, body, headers)
        answer = line.getresponse()
        said = json.loads(answer.read(MAX_ANSWER_BYTES))
    except (OSError, HTTPException, ValueError) as error:
        sentence = f"{address.host} did not say whether it approves: {error}."
        raise PairingError(sentence) from error
    finally:
        line.close()
    if not isinstance(said, dict) or answer.status != 200:
        reason = said.get("detail", answer.status) if isinstance(said, dict) else answer.status
        sentence = f"{address.host} does not approve it: {str(reason)[:300]}."
        raise PairingError(sentence)
    return said
