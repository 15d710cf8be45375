"""Settings of one Matrix source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from upright.api import SecretRef

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_USER: Final = re.compile(r"@[^:\s]+:[^\s]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixSettings:
    """Keys of ``[sources.NAME]`` with ``connector = "matrix"``.

    ``homeserver`` is the address of the client-server API, ``user_id`` the bot's own id
    (``@helper:example.org``), ``token`` its access token. ``rooms`` are the ids or aliases of the
    rooms that are heard; none: all that the bot is in. ``mention_only``: of these rooms (``*``:
    all) only what speaks to the bot is heard. ``senders`` are the ids of those who are heard; none:
    everybody. ``invites_from``: whose invitations are accepted, user ids or ``*:server``; none:
    nobody's. ``bots`` are user ids of other bots. ``notices``: send ``m.notice``, which notifies
    nobody. ``poll_s`` bounds a silent long poll, ``timeout_s`` each other call, ``max_gap`` how
    many missed events of one room are read anew.

    Raises:
        ValueError: a value that can't work, named by its key.
    """

    homeserver: str
    user_id: str
    token: SecretRef
    rooms: tuple[str, ...] = ()
    mention_only: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    invites_from: tuple[str, ...] = ()
    bots: tuple[str, ...] = ()
    notices: bool = False
    poll_s: float = 30.0
    timeout_s: float = 20.0
    max_gap: int = 10_000

    def __post_init__(self) -> None:
        address = urlsplit(self.homeserver)
        if not address.hostname or address.scheme not in {"http", "https"}:
            raise ValueError("homeserver must be an address such as https://matrix.example.org")
        if address.scheme == "http" and address.hostname not in _LOOPBACK:
            raise ValueError("homeserver must be https: the token would travel in clear")
        if not _USER.fullmatch(self.user_id):
            raise ValueError("user_id must be the bot's full id, such as @helper:example.org")
        if not 0 < self.poll_s <= 300:
            raise ValueError("poll_s must be more than 0 and at most 300")
        if not 0 < self.timeout_s <= 300:
            raise ValueError("timeout_s must be more than 0 and at most 300")
        if self.max_gap < 1:
            raise ValueError("max_gap must be 1 or more")
