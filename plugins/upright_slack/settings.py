"""Settings of one Slack source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from upright.api import SecretRef

DEFAULT_API_URL: Final = "https://slack.com/api"
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackSettings:
    """Keys of ``[sources.NAME]`` with ``connector = "slack"``.

    ``bot_token`` (``xoxb-…``) speaks to the API. Events come by Socket Mode when ``app_token``
    (``xapp-…``) is given, by HTTP at ``/hooks/NAME`` when ``signing_secret`` is: one of the two.
    ``channels`` are the ids that are heard; none: all that the bot is in. ``mention_only``: of
    these channels (``*``: all) only what speaks to the bot is heard. ``senders`` are the ids of
    those who are heard; none: everybody. ``silence_s``: a socket on which nothing came for so long
    is given up. ``timeout_s`` bounds each call. ``threads_back_s``: how old a thread may be whose
    new replies are looked for after an absence.

    Raises:
        ValueError: a value that can't work, named by its key.
    """

    bot_token: SecretRef
    app_token: SecretRef | None = None
    signing_secret: SecretRef | None = None
    api_url: str = DEFAULT_API_URL
    channels: tuple[str, ...] = ()
    mention_only: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    silence_s: float = 60.0
    timeout_s: float = 20.0
    threads_back_s: float = 7 * DAY_S

    def __post_init__(self) -> None:
        address = urlsplit(self.api_url)
        if not address.hostname or address.scheme not in {"http", "https"}:
            raise ValueError("api_url must be an address such as https://slack.com/api")
        if address.scheme == "http" and address.hostname not in _LOOPBACK:
            raise ValueError("api_url must be https: the token would travel in clear")
        if (self.app_token is None) == (self.signing_secret is None):
            raise ValueError("app_token (Socket Mode) or signing_secret (HTTP) must be there")
        if not 0 < self.silence_s <= 600:
            raise ValueError("silence_s must be more than 0 and at most 600")
        if not 0 < self.timeout_s <= 300:
            raise ValueError("timeout_s must be more than 0 and at most 300")
        if self.threads_back_s < 0:
            raise ValueError("threads_back_s must be 0 or more")
