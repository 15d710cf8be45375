"""Headers: what a browser is told of every page, so that nothing but our own files runs in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""No inline script or style, nothing from elsewhere, no frame around it."""

_ALWAYS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
PAGE: Final[Mapping[str, str]] = {
    **_ALWAYS,
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Vary": "Accept-Language, Cookie",
}
STATIC: Final[Mapping[str, str]] = {
    **_ALWAYS,
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
}
