"""Settings of one GitHub source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from upright.api import SecretRef

DEFAULT_API_URL: Final = "https://api.github.com"
MAX_BODY_BYTES: Final = 25 * 1024 * 1024  # GitHub's own cap on a webhook's payload
MAX_TIMEOUT_S: Final = 300.0
MIN_POLL_S: Final = 5.0
MAX_POLL_S: Final = 3_600.0
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubSettings:
    """Keys of ``[sources.NAME]`` with ``connector = "github"``.

    ``secret`` signs the webhooks, ``token`` speaks to the API. With ``poll_s`` the ``repositories``
    are looked at every so many seconds instead: for a hub without a public address.

    ``bot_login`` is the account that the token belongs to (``my-bot`` or ``my-app[bot]``): what it
    does never triggers the agent, and ``@my-bot`` speaks to it. ``repositories`` are full names
    (``acme/app``); none: all that send. ``app_id`` is the numeric id of a GitHub App of our own; 0:
    none. ``timeout_s`` bounds each call to the API.

    Raises:
        ValueError: a value that can't work, named by its key.
    """

    token: SecretRef
    bot_login: str
    secret: SecretRef | None = None
    poll_s: float = 0.0
    api_url: str = DEFAULT_API_URL
    repositories: tuple[str, ...] = ()
    app_id: int = 0
    max_body_bytes: int = MAX_BODY_BYTES
    timeout_s: float = 20.0

    def __post_init__(self) -> None:
        address = urlsplit(self.api_url)
        if not address.hostname or address.scheme not in {"http", "https"}:
            raise ValueError("api_url must be an address such as https://api.github.com")
        if address.scheme == "http" and address.hostname not in _LOOPBACK:
            raise ValueError("api_url must be https: the token would travel in clear")
        if not self.bot_login.strip():
            raise ValueError("bot_login must name the account that the token belongs to")
        if self.secret is None and not self.poll_s:
            raise ValueError("secret is missing: it signs the webhooks (or set poll_s to poll)")
        if self.poll_s and not MIN_POLL_S <= self.poll_s <= MAX_POLL_S:
            raise ValueError("poll_s must be 0 for webhooks, or between 5 and 3600 seconds")
        if self.poll_s and not self.repositories:
            raise ValueError("repositories must name what is polled")
        if self.max_body_bytes < 1:
            raise ValueError("max_body_bytes must be 1 or more")
        if not 0 < self.timeout_s <= MAX_TIMEOUT_S:
            raise ValueError("timeout_s must be more than 0 and at most 300")
