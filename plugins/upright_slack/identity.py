"""Identity: who we are in a workspace, and how its things are named to the hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from upright.api import Destination

DEFAULT_URL: Final = "https://slack.com/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What ``auth.test`` says of our token. ``url`` is the workspace's own address."""

    team: str
    user: str
    bot: str = ""
    url: str = DEFAULT_URL

    def is_us(self, user: str, bot: str) -> bool:
        """Tell whether an account, or the bot that posts by it, is ours."""
        return user == self.user or (bot == self.bot != "")

    def thread(self, channel: str, root: str) -> str:
        """Return the key of a thread: a message outside of any is the root of its own."""
        return f"slack:{self.team}/{channel}/{root}"

    def link(self, channel: str, ts: str, root: str = "") -> str:
        """Return the address under which people open a message."""
        base = f"{self.url.rstrip('/')}/archives/{channel}/p{ts.replace('.', '')}"
        return f"{base}?thread_ts={root}&cid={channel}" if root and root != ts else base


def destination(source: str, channel: str, root: str) -> Destination:
    """Return where an answer goes: into the thread of *root*."""
    address = (("channel", channel), ("thread_ts", root))
    return Destination(source=source, kind="thread", address=address)
