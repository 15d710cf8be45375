"""Team: accounts and what is one's own: tokens, sign-ins, private items; and the audit trail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from http import HTTPStatus
from typing import Final

from aiohttp import web

from upright.core.roles import Role, narrowed, scopes_of
from upright.engine.clock import now_ms
from upright.store import accounts, audit_trail, privacy, signins, tokens
from upright.store.accounts import LOCAL_ID, Account
from upright.store.audit_trail import Wanted
from upright.store.errors import UnknownIdError
from upright.store.unit import Unit
from upright.web.bodies import number, read_fields
from upright.web.credential import SIGN_IN, TOKEN
from upright.web.csrf import csrf_of
from upright.web.described import does, flag, reads, text, whole
from upright.web.doors import CODE_BYTES
from upright.web.granting import may_grant_exec, may_stand_for
from upright.web.plain import answer
from upright.web.principal import PRINCIPAL, Principal, require
from upright.web.problems import PARTS, ProblemError
from upright.web.reads import LISTED, MOST_LISTED, whole_id
from upright.web.schemas import TEXT, TIME, TRUTH, WHOLE, array, thing

DAY_MS: Final = 86_400_000
MAX_NAME: Final = 100
_DIGITS: Final = 6
_ROLE: Final = {**TEXT, "enum": [role.word for role in Role]}
YES: Final = {"yes": True, "no": False}


def routes() -> Iterable[web.RouteDef]:
    """Return the paths of this part."""
    get, post = web.get, web.post
    return (
        get("/v1/me", me),
        get("/v1/tokens", list_tokens),
        post("/v1/tokens", new_token),
        post("/v1/tokens/{id}/revoke", revoke_token),
        get("/v1/sign-ins", list_sign_ins),
        post("/v1/sign-ins/{id}/end", end_sign_in),
        post("/v1/work/{id}/private", make_private),
        post("/v1/work/{id}/share", make_shared),
        get("/v1/accounts", list_accounts),
        post("/v1/accounts/{name}/give", give),
        post("/v1/accounts/{name}/revoke", revoke),
        post("/v1/accounts/{name}/link", new_link),
        get("/v1/audit", audit),
    )


# ------------------------------------------------------------------ one's own
@reads(thing(account=TEXT, name=TEXT, role=_ROLE, exec=TRUTH, via=TEXT, csrf=TEXT))
async def me(request: web.Request) -> web.Response:
    """Say who asks, what they may do, and the token that a page must send along."""
    who = request[PRINCIPAL]
    return answer({**_shown(who), "csrf": csrf_of(request)})


def _shown(who: Principal) -> dict[str, object]:
    return {
        "account": who.account,
        "name": who.name,
        "role": who.role.word,
        "exec": who.exec,
        "scopes": sorted(who.scopes),
        "via": who.via,
    }


@reads(
    array(thing(id=TEXT, name=TEXT, scopes=array(TEXT), ends_at_ms=TIME, state=TEXT)), flag("all")
)
async def list_tokens(request: web.Request) -> web.Response:
    """List one's own tokens; an admin's ``?all=1`` lists everybody's.

    ``state``: active, ending (within seven days), expired, revoked.
    """
    parts, account = request.app[PARTS], _whose(request)
    at = now_ms(parts.clock)
    found = await parts.store.read(lambda c: tokens.listed(c, account=account, now_ms=at))
    return answer(found)


@does(thing(id=TEXT, token=TEXT, ends_at_ms=TIME), "name", "scopes", "days")
async def new_token(request: web.Request) -> web.Response:
    """Make a token: ``{"name", "scopes", "days"}``, scopes with spaces; it is shown this once.

    A token can't make one that may more than itself.
    """
    doors, who = request.app[PARTS].doors, request[PRINCIPAL]
    name, scopes_said, days_said = await read_fields(request, "name", "scopes", "days")
    scopes = scopes_of(scopes_said.split())
    if narrowed(Role.ADMIN, scopes) > who.role or ("exec" in scopes and not who.exec):
        detail = f"{who.name} is here as {who.role.word}, and can't give more than that"
        raise ProblemError(HTTPStatus.FORBIDDEN, "role.too_low", detail)
    most = doors.terms.token_days
    if not (days_said.isascii() and days_said.isdigit() and len(days_said) <= _DIGITS):
        days_said = "0"
    days = int(days_said)
    if not 0 < days <= most:
        detail = f"days is a whole number from 1 to {most}"
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "body.fields", detail)
    if len(name) > MAX_NAME or not name.isprintable():
        detail = f"a name has at most {MAX_NAME} characters that can be shown"
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "body.fields", detail)
    secret = tokens.written(doors.random_bytes(tokens.RANDOM_BYTES))

    def unit(u: Unit) -> dict[str, object]:
        account = _account(u, who)
        ends = u.now_ms + days * DAY_MS
        if TOKEN in request:  # what a token makes does not outlive it
            ends = min(ends, request[TOKEN].ends_at_ms)
        token = tokens.add(u, account, secret, name=name, scopes=scopes, ends_at_ms=ends)
        return {"id": token, "token": secret, "scopes": sorted(scopes), "ends_at_ms": ends}

    return answer(await doors.units.write(unit))


def _account(u: Unit, who: Principal) -> Account:
    found = accounts.read(u.c, who.account)
    if found is None:
        raise UnknownIdError(who.account)
    return found


@does(thing(token=TEXT, revoked=TRUTH))
async def revoke_token(request: web.Request) -> web.Response:
    """End one's own token; an admin ends anybody's."""
    wanted, account = request.match_info["id"], _own_or_admin(request)
    await request.app[PARTS].doors.units.write(lambda u: tokens.revoke(u, wanted, account=account))
    return answer({"token": wanted, "revoked": True})


@reads(array(thing(id=TEXT, remote=TEXT, made_at_ms=TIME)), flag("all"))
async def list_sign_ins(request: web.Request) -> web.Response:
    """List one's own browsers that are in; an admin's ``?all=1`` lists everybody's."""
    parts, account = request.app[PARTS], _whose(request)
    at = now_ms(parts.clock)
    found = await parts.store.read(lambda c: signins.listed(c, account=account, now_ms=at))
    mine = request[SIGN_IN].id if SIGN_IN in request else ""
    return answer([{**each, "this": each["id"] == mine} for each in found])


@does(thing(sign_in=TEXT, ended=TRUTH))
async def end_sign_in(request: web.Request) -> web.Response:
    """Sign a browser of one's own out; an admin signs out anybody's."""
    wanted, account = request.match_info["id"], _own_or_admin(request)
    await request.app[PARTS].doors.units.write(lambda u: signins.end(u, wanted, account=account))
    return answer({"sign_in": wanted, "ended": True})


def _whose(request: web.Request) -> str | None:
    if request.query.get("all") == "1":
        require(request, Role.ADMIN)
        return None
    return request[PRINCIPAL].account


def _own_or_admin(request: web.Request) -> str | None:
    who = request[PRINCIPAL]
    return None if who.role >= Role.ADMIN else who.account


# ------------------------------------------------------------------ private items
@does(thing(work=TEXT, private=TRUTH))
async def make_private(request: web.Request) -> web.Response:
    """Let an item be seen by its owner alone; its owner says so."""
    return await _private(request, private=True)


@does(thing(work=TEXT, private=TRUTH))
async def make_shared(request: web.Request) -> web.Response:
    """Let everybody see an item again; its owner says so."""
    return await _private(request, private=False)


async def _private(request: web.Request, *, private: bool) -> web.Response:
    wanted, name = await whole_id(request, "work"), request[PRINCIPAL].name
    units = request.app[PARTS].doors.units
    await units.write(lambda u: privacy.set_private(u, wanted, name, private=private))
    return answer({"work": wanted, "private": private})


# ------------------------------------------------------------------ accounts
@reads(array(thing(id=TEXT, name=TEXT, role=_ROLE, runs=TRUTH, revoked=TRUTH)))
async def list_accounts(request: web.Request) -> web.Response:
    """List accounts by name, revoked ones too."""
    found = await request.app[PARTS].store.read(accounts.listed)
    return answer([{**asdict(each), "role": each.role.word} for each in found])


@does(thing(name=TEXT, role=_ROLE, exec=TRUTH), "role", "exec")
async def give(request: web.Request) -> web.Response:
    """Give a person a role: ``{"role": …, "exec": "yes" or "no"}``; this makes their account.

    Only who may let commands run gives that grant.
    """
    doors, name, who = request.app[PARTS].doors, request.match_info["name"], request[PRINCIPAL]
    said, runs = await read_fields(request, "role", "exec")
    role = Role.of(said)
    if runs not in YES or len(name) > MAX_NAME or not name.isprintable():
        detail = "exec is yes or no, and a name can be shown"
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "body.fields", detail)

    def unit(u: Unit) -> Account:
        if YES[runs]:
            may_grant_exec(who, accounts.named(u.c, name))
        return accounts.give(u, name, role, runs=YES[runs])

    account = await doors.units.write(unit)
    return answer({"name": name, "role": role.word, "exec": account.runs})


@does(thing(name=TEXT, revoked=TRUTH))
async def revoke(request: web.Request) -> web.Response:
    """Take everything away from a person, at once: sign-ins, tokens, streams."""
    name = request.match_info["name"]
    await request.app[PARTS].doors.units.write(lambda u: accounts.revoke(u, name))
    return answer({"name": name, "revoked": True})


@does(thing(path=TEXT, url=TEXT))
async def new_link(request: web.Request) -> web.Response:
    """Make a one-time link for an account; ``local`` is the owner of the hub's machine.

    Nobody makes one for an account that may more than they do.
    """
    doors, name, who = request.app[PARTS].doors, request.match_info["name"], request[PRINCIPAL]
    code = doors.secret(CODE_BYTES)

    def unit(u: Unit) -> Account:
        account = accounts.need(u.c, name)
        may_stand_for(who, account)
        signins.add_link(u, account, code, life_ms=doors.terms.link_ms)
        return account

    account = await doors.units.write(unit)
    path = f"/sign-in/link/{code}"
    origin = "" if account.id == LOCAL_ID else doors.terms.origin
    return answer({"path": path, "url": f"{origin}{path}", "for": account.name})


# ------------------------------------------------------------------ what was done
@reads(
    array(thing(seq=WHOLE, at_ms=TIME, who=TEXT, via=TEXT, action=TEXT, outcome=TEXT)),
    text("who"),
    text("action"),
    whole("since"),
    whole("before"),
    whole("limit"),
)
async def audit(request: web.Request) -> web.Response:
    """List what people did: ``?who=``, ``?action=``, ``?since=`` ms, ``?before=``, ``?limit=``."""
    asked = Wanted(
        who=request.query.get("who", ""),
        action=request.query.get("action", ""),
        since_ms=number(request, "since", 0) or None,
        before_seq=number(request, "before", 0) or None,
        limit=number(request, "limit", LISTED, most=MOST_LISTED),
    )
    return answer(await request.app[PARTS].store.read(lambda c: audit_trail.rows(c, asked)))
