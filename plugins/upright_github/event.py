"""Events: one verified payload with what all translations need of it."""

from __future__ import annotations

from dataclasses import dataclass

from upright.api import Actor, ActorKind, Address, Code, Destination
from upright.kit.payload import Json
from upright_github.destinations import COMMENT, REVIEW_REPLY
from upright_github.keys import Place
from upright_github.text import login_of, mentions


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who we are at GitHub: the login of the token, and our App's id (0: none)."""

    login: str
    app_id: int = 0

    def is_login(self, login: str, *, bot: bool) -> bool:
        """Tell whether an account is ours.

        ``name`` and ``name[bot]`` are two accounts and anybody may own the former, so the suffix
        is forgiven only to an account that GitHub itself calls a bot.
        """
        if login.lower() == self.login.lower():
            return True
        return bot and login_of(login) == login_of(self.login)

    def is_app(self, app: Json | None) -> bool:
        """Tell whether an App is ours, by its id or by the name that its bot account has."""
        if app is None:
            return False
        return app.maybe_number("id") == self.app_id != 0 or self.is_login(
            f"{app.maybe_text('slug')}[bot]", bot=True
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened, where, told by whom."""

    source: str
    action: str
    payload: Json
    place: Place
    me: Identity

    def sender(self) -> Actor:
        """Return the account that acted."""
        return self.account(self.payload.maybe_part("sender"))

    def account(self, user: Json | None) -> Actor:
        """Return an account as an actor; see :func:`account`."""
        return account(self.me, user)

    def app(self, app: Json | None, otherwise: str) -> Actor:
        """Return a CI application as an actor; *otherwise* is its name when none is given.

        The sender of a check is who pushed, or who opened the pull request: often ourselves. The
        news comes from the application.
        """
        slug = (app.maybe_text("slug") or app.maybe_text("name")) if app else ""
        kind = ActorKind.SELF if self.me.is_app(app) else ActorKind.BOT
        name = (app.maybe_text("name") if app else "") or otherwise
        return Actor(id=f"app:{slug or otherwise}", name=name, kind=kind)

    def code(
        self, *, sha: str = "", branch: str = "", number: int | None = None, fork: bool = False
    ) -> Code:
        """Return the code that this is about."""
        repository = self.payload.part("repository")
        names = ("clone_url", "ssh_url", "git_url", "html_url")
        urls = dict.fromkeys(url for name in names if (url := repository.maybe_text(name)))
        return Code(
            repository=self.place.repository,
            urls=tuple(urls),
            sha=sha,
            branch=branch,
            number=number,
            fork=fork,
        )

    def comment_on(self, number: int | None) -> Destination | None:
        """Return where a comment on an issue or a pull request goes."""
        if number is None:
            return None
        address = (("repo", self.place.repository), ("number", str(number)))
        return Destination(source=self.source, kind=COMMENT, address=address)

    def reply_on_line(self, number: int, root: int) -> Destination:
        """Return where an answer to a comment on a line goes: below the first of its thread."""
        address = (
            ("repo", self.place.repository),
            ("number", str(number)),
            ("comment", str(root)),
        )
        return Destination(source=self.source, kind=REVIEW_REPLY, address=address)

    def address(self, text: str) -> Address:
        """Tell whether a text mentions us."""
        return Address.MENTION if mentions(text, self.me.login) else Address.NONE

    def facts(self, **values: str) -> tuple[tuple[str, str], ...]:
        """Return facts for rules and people, empty ones left out.

        ``branch_keys`` is what the key of any branch of this repository begins with: a hub that
        knows which branch a worker will push can subscribe it before the first push.
        """
        common = {
            "repository": self.place.repository,
            "action": self.action,
            "branch_keys": self.place.branches(),
        }
        return tuple((key, value) for key, value in {**common, **values}.items() if value)


def account(me: Identity, user: Json | None) -> Actor:
    """Return an account as an actor: SELF, BOT, or STRANGER until configuration knows more."""
    if user is None:
        return Actor(id="ghost", name="ghost")  # GitHub's own name for a deleted account
    login = user.text("login")
    bot = user.maybe_text("type") == "Bot"
    kind = ActorKind.BOT if bot else ActorKind.STRANGER
    if me.is_login(login, bot=bot):
        kind = ActorKind.SELF
    return Actor(id=login, name=user.maybe_text("name") or login, kind=kind)


def names(parts: tuple[Json, ...], key: str = "name") -> str:
    """Return the names of labels or people, joined by commas."""
    return ",".join(part.maybe_text(key) for part in parts)
