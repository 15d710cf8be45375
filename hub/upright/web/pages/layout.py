"""Layout: one way in which every page is made: language, headers, escaped text, who is here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final, TypeVar, cast
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from upright.core.roles import Role
from upright.engine.clock import now_ms
from upright.store import views_events
from upright.store.unit import Connection
from upright.web.csrf import csrf_of
from upright.web.pages import texts
from upright.web.pages.headers import PAGE
from upright.web.pages.shelf import SHELF
from upright.web.pages.texts import Texts
from upright.web.principal import PRINCIPAL, Principal
from upright.web.privacy import hidden_of, seen
from upright.web.problems import PARTS, ProblemError

T = TypeVar("T")
NAV: Final = (("inbox", "/"), ("needs", "/needs"), ("devices", "/devices"))
_YEAR_S: Final = 365 * 86_400
_SAFE_SCHEMES: Final = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a template may use beside its own facts."""

    texts: Texts
    at_ms: int
    who: Principal | None
    csrf: str

    def age(self, at_ms: int | None) -> str:
        """Say how long ago a time was, as of this page."""
        return self.texts.age(at_ms, self.at_ms)

    @property
    def acts(self) -> bool:
        """Whether who looks may do anything."""
        return self.who is not None and self.who.role >= Role.OPERATOR

    @property
    def runs(self) -> bool:
        """Whether who looks may let commands run on devices."""
        return self.acts and self.who is not None and self.who.exec


async def read(request: web.Request, query: Callable[[Connection], T]) -> T:
    """Read what a page shows: never more than who asks may see."""
    return visible(request, await request.app[PARTS].store.read(query))


def visible(request: web.Request, value: T) -> T:
    """Leave out what who asks may not see; the form stays.

    Raises:
        UnknownIdError: it is all about that.
    """
    return cast("T", seen(value, hidden_of(request)))


async def newest(request: web.Request) -> int:
    """Return the number behind which this page goes on: ask before anything else is read."""
    return await request.app[PARTS].store.read(views_events.last_seq)


def page(
    request: web.Request,
    name: str,
    facts: Mapping[str, object],
    status: int = HTTPStatus.OK,
) -> web.Response:
    """Make a page of its template; every text in it is escaped."""
    shelf = request.app[SHELF]
    said = shelf.texts[texts.language_of(request)]
    who = request.get(PRINCIPAL)
    sheet = Sheet(texts=said, at_ms=now_ms(request.app[PARTS].clock), who=who, csrf=_csrf(request))
    html = shelf.templates[name].render(
        {
            "t": said.say,
            "word": said.word,
            "age": sheet.age,
            "stamp": stamp,
            "link": safe_link,
            "sheet": sheet,
            "nav": NAV,
            "languages": texts.LANGUAGES,
            "other": lambda language: with_query(request, lang=language),
            "path": request.path_qs,
            "seq": None,
            **facts,
        }
    )
    response = web.Response(text=html, status=status, content_type="text/html", headers=PAGE)
    wanted = request.query.get(texts.QUERY)
    if wanted in texts.LANGUAGES:
        response.set_cookie(
            texts.COOKIE, str(wanted), max_age=_YEAR_S, path="/", httponly=True, samesite="Lax"
        )
    return response


def problem_page(request: web.Request, error: ProblemError) -> web.Response:
    """Show a person what went wrong and what to do, with the code that machines get."""
    said = request.app[SHELF].texts[texts.language_of(request)].by_key
    facts = {
        "status": error.status,
        "code": error.code,
        "detail": error.detail,
        "happened": said.get(f"trouble.{error.code}", ""),
        "do": said.get(f"trouble.{error.code}.do", ""),
        "here": "",
    }
    return page(request, "problem.html", facts, error.status)


def back(where: str) -> web.Response:
    """Send a browser to a page of ours, after it did something."""
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={**PAGE, "Location": where})


# ------------------------------------------------------------------ for templates
def with_query(request: web.Request, **more: object) -> str:
    """Return this page's address with some of its query changed; None takes one away."""
    query = {**request.query, **more}
    said = urlencode({name: value for name, value in query.items() if value not in {None, ""}})
    return f"{request.rel_url.raw_path}?{said}" if said else request.rel_url.raw_path


def stamp(at_ms: int | None) -> str:
    """Return a time as machines and tooltips read it, UTC; empty for none."""
    if at_ms is None:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def safe_link(address: object) -> str:
    """Return an address that may be clicked: of the web alone; empty for any other."""
    text = str(address or "")
    try:
        scheme = urlsplit(text).scheme
    except ValueError:
        return ""
    return text if scheme in _SAFE_SCHEMES else ""


def _csrf(request: web.Request) -> str:
    return csrf_of(request) if PRINCIPAL in request else ""
