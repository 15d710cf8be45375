"""Addresses: which of them are public, so that what comes from outside may be asked there.

An IPv6 address that carries an IPv4 one (mapped, compatible, 6to4, Teredo, NAT64) is as public as
the one that it carries.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

_CARRIES_LAST: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE: Final = IPv6Network("::/96")


def is_literal(host: str) -> bool:
    """Say whether a host is an address, and no name that somebody resolves."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def is_public(text: str) -> bool:
    """Say whether a literal address is one that anybody may reach; False for what is none."""
    if not is_literal(text):
        return False
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast
    looked_at: Iterable[IPv4Address | IPv6Address] = _carried(address) or (address,)
    return all(one.is_global and not one.is_multicast for one in looked_at)


def _carried(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses that one carries; of Teredo its server and its client."""
    found = [one for one in (address.ipv4_mapped, address.sixtofour) if one is not None]
    if address.teredo is not None:
        found += address.teredo
    if address in _COMPATIBLE or any(address in each for each in _CARRIES_LAST):
        found.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return found
