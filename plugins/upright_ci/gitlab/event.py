"""Events: one verified payload of GitLab with what all translations need of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from upright.api import Actor, ActorKind, Address, Destination
from upright.kit.payload import Json
from upright_ci.keys import Place

MAX_SCANNED_CHARS: Final = 65_536
CI: Final = Actor(id="app:gitlab-ci", name="GitLab CI", kind=ActorKind.BOT)
# docs.gitlab.com, "Project access tokens", "Bot users for projects"; "Service accounts"
_BOTS: Final = re.compile(r"(?:(?:project|group)_\d+_bot|service_account_)\w*", re.ASCII)
_CODE: Final = re.compile(r"^(```|~~~).*?(?:^\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened, where; ``login`` is our own account's name."""

    source: str
    payload: Json
    place: Place
    login: str

    def user(self, key: str = "user") -> Actor:
        """Return the account that acted."""
        return self.account(self.payload.maybe_part(key))

    def account(self, user: Json | None) -> Actor:
        """Return an account as an actor: SELF, BOT, or STRANGER until configuration knows more."""
        login = (user.maybe_text("username") or user.maybe_text("name")) if user else ""
        if user is None or not login:
            return Actor(id="ghost", name="ghost")  # GitLab's own name for a deleted account
        kind = ActorKind.BOT if _BOTS.fullmatch(login) else ActorKind.STRANGER
        if self.login and login.lower() == self.login.lower():
            kind = ActorKind.SELF
        return Actor(id=login, name=user.maybe_text("name") or login, kind=kind)

    def note_on(self, what: str, iid: int | None) -> Destination | None:
        """Return where a note on a merge request or an issue goes."""
        if iid is None:
            return None
        address = (("project", self.place.repository), ("on", what), ("iid", str(iid)))
        return Destination(source=self.source, kind="note", address=address)

    def address(self, text: str) -> Address:
        """Tell whether a text mentions us, outside code."""
        text = text[:MAX_SCANNED_CHARS]
        if not self.login or "@" not in text:
            return Address.NONE
        pattern = rf"(?<![\w@/.`+-])@{re.escape(self.login)}(?![\w/-])"
        found = re.search(pattern, _CODE.sub(" ", text), re.IGNORECASE)
        return Address.MENTION if found else Address.NONE


def when(part: Json, *keys: str) -> datetime | None:
    """Return the first time that is there: ISO 8601, or ``2016-08-12 15:23:28 UTC``."""
    for key in keys:
        said = part.maybe_text(key)
        if not said:
            continue
        try:
            at = datetime.fromisoformat(said.removesuffix(" UTC"))
        except ValueError:
            part.refuse(key, "time")
        return at.replace(microsecond=0) if at.tzinfo else at.replace(microsecond=0, tzinfo=UTC)
    return None


def stamp(at: datetime | None) -> str:
    """Return a time as it stands in keys: webhooks and the API spell one moment differently."""
    return at.astimezone(UTC).isoformat() if at else ""


def place_of(payload: Json, default_branches: frozenset[str]) -> Place:
    """Read the project of a payload: pipelines name it, jobs give the page of the repository."""
    project = payload.maybe_part("project") or payload.part("repository")
    url = project.maybe_text("web_url") or project.text("homepage")
    parts = urlsplit(url)
    path = project.maybe_text("path_with_namespace") or parts.path.strip("/")
    default = project.maybe_text("default_branch")
    return Place(
        host=f"gitlab:{parts.netloc.lower()}",
        repository=path,
        default_branches=default_branches | ({default} if default else frozenset()),
        sign="!",
    )


def clone_urls(payload: Json) -> tuple[str, ...]:
    """Return the addresses that a clone may have as its remote."""
    project = payload.maybe_part("project") or payload.part("repository")
    names = ("git_http_url", "git_ssh_url", "http_url", "ssh_url", "web_url", "homepage")
    return tuple(dict.fromkeys(url for name in names if (url := project.maybe_text(name))))


def facts(**values: str) -> tuple[tuple[str, str], ...]:
    """Return facts for rules and people, empty ones left out."""
    return tuple((key, value) for key, value in values.items() if value)


def stripped(part: Json) -> Json:
    """Return an object whose keys have no blanks: some versions send ``"iid "``."""
    value: Mapping[str, object] = {key.strip(): value for key, value in part.value.items()}
    return Json(value, part.path)
