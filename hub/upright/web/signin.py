"""Sign-in: a browser comes in by a one-time link, or by the OpenID provider; and goes out again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote, urlsplit

from aiohttp import web

from upright.core.admission import Claims
from upright.core.trigger import Person
from upright.store import accounts, audit_trail, signins
from upright.store.accounts import Account
from upright.store.acting import Deed
from upright.store.signins import Browser, Flow
from upright.store.unit import Unit
from upright.web.credential import SIGN_IN, cookie_name
from upright.web.csrf import check_origin
from upright.web.doors import COOKIE_BYTES, Doors
from upright.web.guard import LOOPBACK, host_name
from upright.web.oidc import Provider, SignInError, Visit
from upright.web.pages import layout
from upright.web.problems import PARTS, ProblemError
from upright.web.remote import remote_of

HOME: Final = "/"
FLOW_MS: Final = 600_000
MAX_CODE: Final = 200
FLOW: Final = "upright-visit"
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def routes() -> Iterable[web.RouteDef]:
    """Return the paths of this part."""
    return (
        web.get("/sign-in", page),
        web.get("/sign-in/link/{code}", by_link, allow_head=False),
        web.get("/sign-in/start", start),
        web.get("/sign-in/return", returned),
        web.post("/sign-out", sign_out),
    )


def own_path(wanted: str) -> str:
    """Return a path of this hub to go to, or the home page: never another site's address."""
    try:
        address = urlsplit(wanted)
    except ValueError:
        return HOME
    outside = address.scheme or address.netloc or not wanted.startswith("/")
    odd = wanted.startswith(("//", "/\\")) or "\\" in wanted or not wanted.isprintable()
    inner = address.path.startswith(("/sign-in", "/sign-out", "/v1/"))
    return HOME if outside or odd or inner else wanted


# ------------------------------------------------------------------ pages
async def page(request: web.Request) -> web.Response:
    """Say how one signs in here: by the provider, or by a link."""
    after = quote(own_path(request.query.get("next", "")))
    has_provider = request.app[PARTS].doors.provider is not None
    facts = {"here": "", "after": after, "has_provider": has_provider}
    return layout.page(request, "signin.html", facts)


# ------------------------------------------------------------------ by a link
async def by_link(request: web.Request) -> web.StreamResponse:
    """Spend a one-time link; the first visit wins. One for the owner works on loopback alone."""
    doors = request.app[PARTS].doors
    check_origin(request)
    remote = _check_tries(request)
    code = request.match_info["code"][:MAX_CODE]
    here = _is_here(request, remote)

    def unit(u: Unit) -> tuple[Account, str] | None:
        account = signins.spend_link(u, code, here=here)
        if account is None:
            audit_trail.add(u, _deed("", "", "link", remote), "sign_in.link")
            return None
        return _let_in(u, request, account, "link")

    try:
        entered = await doors.units.write(unit)
    except SignInError as error:
        raise ProblemError(429, "sign_in.too_many", str(error), retry_after_s=60.0) from error
    if entered is None:
        doors.failed.count(remote)
        detail = "this link is spent or too old; ask for another: upright login"
        raise ProblemError(HTTPStatus.GONE, "sign_in.link_spent", detail)
    return _come_in(request, *entered, next_path=HOME)


def _is_here(request: web.Request, remote: str) -> bool:
    """Say whether a visit comes from this machine, by its socket as well as by its word."""
    try:
        from_here = ip_address(remote).is_loopback
    except ValueError:
        return False
    return from_here and host_name(request.host) in LOOPBACK


# ------------------------------------------------------------------ by the provider
def _provider(request: web.Request) -> Provider:
    provider = request.app[PARTS].doors.provider
    if provider is None:
        detail = "no OpenID provider is configured: set auth.issuer"
        raise ProblemError(HTTPStatus.NOT_FOUND, "sign_in.no_provider", detail)
    return provider


async def start(request: web.Request) -> web.StreamResponse:
    """Send a browser to the provider; ``?next=`` is where it wants to be afterwards."""
    provider, doors = _provider(request), request.app[PARTS].doors
    remote = _check_tries(request)
    doors.entered.count(f"start {remote}")
    visit = Visit(
        state=doors.secret(COOKIE_BYTES),
        nonce=doors.secret(COOKIE_BYTES),
        verifier=doors.secret(COOKIE_BYTES),
    )
    browser = doors.secret(COOKIE_BYTES)
    flow = Flow(
        nonce=visit.nonce,
        verifier=visit.verifier,
        next=own_path(request.query.get("next", "")),
    )
    try:
        where = await provider.authorize_url(visit)
    except SignInError as error:
        raise ProblemError(HTTPStatus.BAD_GATEWAY, "sign_in.provider", str(error)) from error
    await doors.units.write(
        lambda u: signins.add_flow(u, visit.state, browser, flow, life_ms=FLOW_MS)
    )
    response = web.Response(status=HTTPStatus.SEE_OTHER, headers={**HEADERS, "Location": where})
    _set_cookie(response, _flow_name(doors), browser, life_ms=FLOW_MS, secure=doors.terms.secure)
    return response


async def returned(request: web.Request) -> web.StreamResponse:
    """Take a browser back from the provider, and let in whom the configuration lets in."""
    provider, doors = _provider(request), request.app[PARTS].doors
    remote = _check_tries(request)
    state, browser = request.query.get("state", ""), request.cookies.get(_flow_name(doors), "")
    flow = await doors.units.write(lambda u: signins.take_flow(u, state, browser))
    if flow is None:
        doors.failed.count(remote)
        detail = "this sign-in was not begun here, or is too old; begin anew"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "sign_in.not_begun", detail)
    try:
        claims = await provider.claims(request.query, nonce=flow.nonce, verifier=flow.verifier)
        entered = await doors.units.write(lambda u: _admit(u, request, claims))
    except SignInError as error:
        doors.failed.count(remote)
        raise ProblemError(HTTPStatus.FORBIDDEN, "sign_in.refused", str(error)) from error
    if entered is None:
        detail = "this hub does not know you; ask an admin"
        raise ProblemError(HTTPStatus.FORBIDDEN, "sign_in.not_admitted", detail)
    response = _come_in(request, *entered, next_path=flow.next)
    response.del_cookie(_flow_name(doors), path="/")
    return response


def _admit(u: Unit, request: web.Request, claims: Claims) -> tuple[Account, str] | None:
    """Find the account of these claims, or make it if the configuration says so."""
    doors = request.app[PARTS].doors
    account = accounts.by_claims(u.c, claims)
    role = doors.terms.admission.role_of(claims)
    if account is None and role is not None:
        name = _name(doors.people(u.c).by_id, claims)
        known = accounts.named(u.c, name)
        runs = doors.terms.admission.runs(claims)
        if known is not accounts.LOCAL:  # no provider speaks for the owner, whatever a name says
            account = known or accounts.give(u, name, role, runs=runs, email=claims.email)
            accounts.join(u, account, claims)
    if account is None or account.revoked:
        who = account.name if account is not None else claims.email or claims.subject
        deed = _deed(who, "", "oidc", _remote(request))
        audit_trail.add(u, deed, "sign_in.not_admitted")
        return None
    return _let_in(u, request, account, "oidc")


def _name(people: Mapping[str, Person], claims: Claims) -> str:
    """Return the person's name in ``[people]``, else the verified address, else the subject."""
    keys = (f"oidc:{claims.subject}", f"*:{claims.email}", f"oidc:{claims.email}")
    for key in keys:
        if key in people and (claims.email or key == keys[0]):
            return people[key].name
    return claims.email or f"oidc:{claims.subject}"


# ------------------------------------------------------------------ in and out
def _let_in(u: Unit, request: web.Request, account: Account, how: str) -> tuple[Account, str]:
    doors = request.app[PARTS].doors
    if doors.entered.wait_s(account.id) > 0:
        raise SignInError("too many sign-ins of this account; wait a minute")
    cookie = doors.secret(COOKIE_BYTES)
    browser = Browser(remote=_remote(request), agent=request.headers.get("User-Agent", ""))
    signins.begin(u, account, cookie, browser, life_ms=doors.terms.life_ms)
    if old := request.cookies.get(cookie_name(doors), ""):
        signins.forget(u, old)  # the browser has another cookie from now on
    audit_trail.add(u, _deed(account.name, account.id, how, browser.remote))
    return account, cookie


def _come_in(
    request: web.Request, account: Account, cookie: str, *, next_path: str
) -> web.Response:
    doors = request.app[PARTS].doors
    doors.entered.count(account.id)
    headers = {**HEADERS, "Location": next_path}
    response = web.Response(status=HTTPStatus.SEE_OTHER, headers=headers)
    life_ms, secure = doors.terms.life_ms, doors.terms.secure
    _set_cookie(response, cookie_name(doors), cookie, life_ms=life_ms, secure=secure)
    return response


async def sign_out(request: web.Request) -> web.Response:
    """End this browser's sign-in."""
    doors = request.app[PARTS].doors
    if SIGN_IN in request:
        mine = request[SIGN_IN].id
        await doors.units.write(lambda u: signins.end(u, mine, account=None))
    response = web.Response(
        status=HTTPStatus.SEE_OTHER, headers={**HEADERS, "Location": "/sign-in"}
    )
    response.del_cookie(cookie_name(doors), path="/")
    return response


def _set_cookie(
    response: web.Response, name: str, value: str, *, life_ms: int, secure: bool
) -> None:
    response.set_cookie(
        name,
        value,
        max_age=life_ms // 1000,
        path="/",
        secure=secure,
        httponly=True,
        samesite="Lax",  # the provider sends the browser back from its own site
    )


def _flow_name(doors: Doors) -> str:
    return f"__Host-{FLOW}" if doors.terms.secure else FLOW


def _remote(request: web.Request) -> str:
    return remote_of(request, request.app[PARTS].doors.terms.proxies)


def _check_tries(request: web.Request) -> str:
    """Return the address that asks, unless it was wrong too often.

    Raises:
        ProblemError: 429.
    """
    doors, remote = request.app[PARTS].doors, _remote(request)
    wait_s = max(doors.failed.wait_s(remote), doors.entered.wait_s(f"start {remote}"))
    if wait_s > 0:
        detail = "too many sign-ins were tried from this address"
        raise ProblemError(429, "sign_in.too_many", detail, retry_after_s=wait_s)
    return remote


def _deed(who: str, account: str, how: str, remote: str) -> Deed:
    return Deed(who=who, account=account, via=how, action="sign-in", object="", origin=remote)
