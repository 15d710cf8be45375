"""Addresses: where a hub is, from what a person typed; never plain text but to this machine."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from upright_execd.errors import ExecdError

PATH: Final = "/v1/device"
_SECURE: Final = {"https": True, "wss": True, "http": False, "ws": False}
_DEFAULT_PORT: Final = {"wss": 443, "ws": 80}


class AddressError(ExecdError):
    """This is no address of a hub."""

    code = "execd.address"
    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAddress:
    """``url`` is dialled; ``host`` is the name (with a port that is not the usual one) in it."""

    url: str
    host: str


def read_address(text: str) -> HubAddress:
    """Return the address of a hub: ``hub.example.org``, ``https://…`` or ``http://127.0.0.1:8080``.

    Raises:
        AddressError: it is none, holds more than a host, or is plain text to another machine.
    """
    parts = _split(text.strip())
    if parts.username is not None or parts.query or parts.fragment:
        raise AddressError("A hub's address holds no name, password or query.")
    if parts.path.rstrip("/") not in {"", PATH}:
        sentence = f"A hub's address holds no path: {parts.path}"
        raise AddressError(sentence)
    host = parts.hostname or ""
    if parts.scheme not in _SECURE or not host:
        sentence = f"{text!r} is no address."
        raise AddressError(sentence, advice="Try https://HOST.")
    if not _SECURE[parts.scheme] and not is_loopback(host):
        sentence = f"{host} is another machine, and that needs TLS."
        raise AddressError(sentence, advice=f"Try https://{host}.")
    scheme = "wss" if _SECURE[parts.scheme] else "ws"
    port = _port(parts)
    name = f"[{host}]" if ":" in host else host
    dialled = name if port in {None, _DEFAULT_PORT[scheme]} else f"{name}:{port}"
    return HubAddress(url=f"{scheme}://{dialled}{PATH}", host=dialled)


def is_loopback(host: str) -> bool:
    """Say whether a name means this machine without asking anybody."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        is_bare = not parts.scheme
        scheme = "http" if is_loopback(parts.hostname or "") else "https"
    except ValueError as error:
        sentence = f"{text!r} is no address: {error}."
        raise AddressError(sentence) from error
    return parts._replace(scheme=scheme) if is_bare else parts


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError as error:
        sentence = f"{parts.netloc} has no valid port."
        raise AddressError(sentence) from error
