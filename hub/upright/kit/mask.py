"""Mask: what looks like a secret is taken out of a log before anybody stores or reads it.

Providers mask the secrets that they know; this is for those that a program printed all the same.
Source: the token formats in the documents of GitHub, GitLab, Slack, AWS and Google, and RFC 7519.
"""

from __future__ import annotations

import re
from typing import Final

MASKED: Final = "[masked]"
_TOKENS: Final = re.compile(
    r"""
    \b(?:gh[pousr]_[A-Za-z0-9]{20,255}                 # GitHub
    |github_pat_\w{20,255}
    |gl(?:pat|ptt|dt|rt|cbt|soat|ft|agent)-[\w.-]{16,255}  # GitLab
    |xox[abposr]-[\w-]{10,255}                         # Slack
    |xapp-[\w-]{10,255}
    |(?:AKIA|ASIA)[A-Z0-9]{16}                         # AWS
    |AIza[\w-]{35}                                     # Google
    |sk-[\w-]{20,255}
    |uprt_[0-9a-f]{20,64}                              # ours
    |eyJ[\w-]{5,2000}\.eyJ[\w-]{5,4000}\.[\w-]{5,2000} # JWT
    )""",
    re.VERBOSE | re.ASCII,
)
_KEYS: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_URLS: Final = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]{1,20}://)[^\s/@:]{0,255}:[^\s/@]{1,255}@")
_HEADERS: Final = re.compile(r"(?i)(?P<head>\b(?:bearer|basic|token)\s+)[\w.~+/=-]{16,4000}")
_NAMED: Final = re.compile(
    r"(?i)(?P<name>(?:password|passwd|secret|token|api_?key|private_?key|credential)"
    r"[\w.-]{0,64}[\"']?\s{0,3}[=:]\s{0,3}[\"']?)(?P<value>[^\s\"',;]{4,4000})"
)


def masked(text: str) -> str:
    """Return a text with everything replaced that looks like a secret; linear in its length."""
    text = _KEYS.sub(MASKED, text)
    text = _TOKENS.sub(MASKED, text)
    text = _URLS.sub(rf"\g<scheme>{MASKED}@", text)
    text = _HEADERS.sub(rf"\g<head>{MASKED}", text)
    return _NAMED.sub(rf"\g<name>{MASKED}", text)
