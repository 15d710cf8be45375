"""Remote: the address that a request came from; a proxy's word counts only if it is named.

``X-Forwarded-For`` can be sent by anybody. It is read from the right, over the proxies that the
configuration names, to the first address that none of them has vouched for. ``Forwarded``,
``X-Forwarded-Host`` and ``X-Forwarded-Proto`` are never read: ``hub.public_url`` says those.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from aiohttp import web

MOST_HOPS: Final = 16


def remote_of(request: web.Request, proxies: frozenset[str]) -> str:
    """Return the address of who asks; empty when the socket does not say it."""
    found = request.remote or ""
    if found not in proxies:
        return found
    said = ",".join(request.headers.getall("X-Forwarded-For", ()))
    for hop in reversed(said.split(",")[-MOST_HOPS:]):
        try:
            found = str(ip_address(hop.strip()))
        except ValueError:
            return found
        if found not in proxies:
            return found
    return found
