"""Purse: costs by facet, budgets, and the model's endpoints, over HTTP (B16)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from http import HTTPStatus
from typing import Final, TypeVar

from aiohttp import web

from upright.core.budget import Key, Measure, Scope
from upright.engine.clock import now_ms
from upright.store import costs
from upright.store.costs import Facet
from upright.web.bodies import number, read_fields
from upright.web.described import Query, does, reads, whole
from upright.web.forms import one_of
from upright.web.plain import answer
from upright.web.principal import principal_of
from upright.web.problems import PARTS, ProblemError
from upright.web.schemas import ANY, NUMBER, TEXT, TIME, TRUTH, WHOLE, array, mapping, maybe, thing

E = TypeVar("E", bound=StrEnum)
_SUMS: Final = {
    "calls": WHOLE,
    "beside": WHOLE,
    "retries": WHOLE,
    "tokens_input": WHOLE,
    "tokens_cached": WHOLE,
    "tokens_output": WHOLE,
    "usd_micros": maybe(WHOLE),
    "unpriced": WHOLE,
    "seconds": NUMBER,
}
_BUDGET: Final = thing(
    scope=one_of(Scope),
    name=TEXT,
    measure=one_of(Measure),
    used=WHOLE,
    cap=WHOLE,
    percent=NUMBER,
    level=TEXT,
    warned=TRUTH,
    stopped=TRUTH,
    extra=WHOLE,
    unpriced=WHOLE,
    renews_ms=maybe(TIME),
)


def routes() -> Iterable[web.RouteDef]:
    """Return the paths of this part."""
    get, post = web.get, web.post
    return (
        get("/v1/costs/by", by),
        get("/v1/costs/forecast", forecast),
        get("/v1/budgets", budgets),
        post("/v1/budgets", put),
        post("/v1/budgets/clear", clear),
        get("/v1/models", endpoints),
        post("/v1/models/retry", retry),
        post("/v1/models/probe", probe),
    )


@reads(
    thing(by=one_of(Facet), since_ms=TIME, rows=array(thing(name=TEXT, **_SUMS))),
    Query(name="by", kind=one_of(Facet)),
    whole("since"),
)
async def by(request: web.Request) -> web.Response:
    """Add up the ledger by one facet: ``?by=``, ``?since=`` epoch milliseconds."""
    named = request.query.get("by", Facet.SOURCE.value)
    if named not in {each.value for each in Facet}:
        detail = f"by is one of: {', '.join(Facet)}"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "query.by", detail)
    facet = Facet(named)
    since_ms = number(request, "since", 0)
    rows = await request.app[PARTS].store.read(lambda c: costs.grouped(c, facet, since_ms))
    return answer({"by": facet, "since_ms": since_ms, "rows": rows})


@reads(
    thing(
        source=TEXT,
        days=WHOLE,
        a_day=mapping(WHOLE),
        most=mapping(WHOLE),
        month=mapping(WHOLE),
        today=thing(**_SUMS),
    ),
    Query(name="source", kind=TEXT),
)
async def forecast(request: web.Request) -> web.Response:
    """Say what a source will cost, by its last seven whole days: ``?source=``."""
    source, at = request.query.get("source", ""), now_ms(request.app[PARTS].clock)
    return answer(await request.app[PARTS].store.read(lambda c: costs.forecast(c, source, at)))


@reads(array(_BUDGET))
async def budgets(request: web.Request) -> web.Response:
    """List what is used of each cap."""
    return answer(await request.app[PARTS].purse.budgets())


@does(
    thing(scope=TEXT, name=TEXT, measure=TEXT, amount=WHOLE), "scope", "name", "measure", "amount"
)
async def put(request: web.Request) -> web.Response:
    """Set one cap: of the day or each of its kind, the name is ``*``; an amount of 0: no bound."""
    scope, name, measure, amount = await read_fields(request, "scope", "name", "measure", "amount")
    if not (amount.isascii() and amount.isdigit() and len(amount) <= 16):
        detail = "amount must be a whole number"
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "body.fields", detail)
    done = await request.app[PARTS].purse.put(
        Key(_word(Scope, scope, "scope"), name),
        _word(Measure, measure, "measure"),
        int(amount),
        principal_of(request).name,
    )
    return answer(done)


@does(thing(scope=TEXT, name=TEXT, cleared=TRUTH), "scope", "name")
async def clear(request: web.Request) -> web.Response:
    """Take away what people have set for a scope: the configuration holds again."""
    scope, name = await read_fields(request, "scope", "name")
    who = principal_of(request).name
    return answer(
        await request.app[PARTS].purse.clear(Key(_word(Scope, scope, "scope"), name), who)
    )


@reads(array(ANY))
async def endpoints(request: web.Request) -> web.Response:
    """List the model's endpoints: what each can do, and whether its breaker is open."""
    return answer(await request.app[PARTS].purse.endpoints())


@does(thing(retried=TRUTH, woken=WHOLE))
async def retry(request: web.Request) -> web.Response:
    """Close every breaker: what waits for a model tries again."""
    return answer(await request.app[PARTS].purse.retry(principal_of(request).name))


@does(thing(base_url=TEXT, model=TEXT, can=mapping(TRUTH), lacks=array(TEXT), calls=WHOLE), "role")
async def probe(request: web.Request) -> web.Response:
    """Find out what a role's endpoint can do; that costs about eight small calls."""
    (role,) = await read_fields(request, "role")
    return answer(await request.app[PARTS].purse.probe(role))


def _word(words: type[E], given: str, name: str) -> E:
    """Read a word of an enum.

    Raises:
        ProblemError: 422, it is none.
    """
    try:
        return words(given)
    except ValueError as error:
        detail = f"{name} is one of: {', '.join(words)}"
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name}.unknown", detail) from error
