"""Sleepers: one sleeping item, made by the hub's own units, and copies of it by the million."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from upright.api import Actor, ActorKind, Channel, Content, Context, Trigger
from upright.core.gate import Rule, Rules, Verdict
from upright.core.ids import PREFIXES
from upright.core.mandate import Mandate
from upright.core.trigger import People
from upright.core.wait import WaitKind
from upright.store import intake, schema, sessions, waits, work
from upright.store.intake import Policy
from upright.store.unit import Unit

SOURCE: Final = "gh"
RULE: Final = Rule(name="red", verdict=Verdict.EXPLICIT, kinds=("ci.failed",))
POLICY: Final = Policy(
    rules=Rules(version="1", rules=(RULE,)),
    people=People.of((), trusted_bots=frozenset({"gh:ci"})),
    routes=True,
)
COPIED: Final = (
    *("thread", "thread_key", "payload", "trigger", "dedupe", "session"),
    *("subscription", "delivery", "work", "wait", "event"),
)
KINDS: Final = {prefix: kind for kind, prefix in PREFIXES.items()}


def trigger(name: str, *, thread: str) -> Trigger:
    """Make a red build on a thread."""
    return Trigger(
        kind="ci.failed",
        channel=Channel.GITHUB,
        actor=Actor(id="ci", name="CI", kind=ActorKind.BOT),
        content=Content(title="Red", text="It broke. " * 20),
        context=Context(thread=thread),
        dedupe=(name,),
        raw=b"{}" * 500,
    )


Rows = Mapping[str, Sequence[Mapping[Any, Any]]]
"""The sleeper's own rows, by table."""


def sleeper(u: Unit) -> Rows:
    """Open one item that sleeps for a month."""
    (accepted,) = intake.accept(u, SOURCE, [trigger("first", thread="pr:0")], POLICY)
    router = sessions.ensure_router(u)
    stored = intake.read(u.c, accepted.id)
    assert stored is not None
    intake.taken(u.c, router, [stored], 1)
    opening = work.Opening(
        trigger=stored,
        goal="make it green",
        criteria=("tests pass",),
        mandate=Mandate(given_by="ci", trust=stored.trust),
        taint=stored.trust,
    )
    item = work.open_item(u, opening, router).item
    intake.taken(u.c, item.session, intake.unread(u.c, item.session), 1)
    asked = waits.Asked(kind=WaitKind.TIMER, ref="", why="a nap", deadline_s=30 * 86_400)
    waits.register(u, item.id, asked)
    work.rest(u, work.read(u.c, item.id))
    session = schema.METADATA.tables["session"]
    u.c.execute(session.update().values(ready_at_ms=None))
    return {name: _own(u.c, schema.METADATA.tables[name]) for name in COPIED}


def _own(c: sa.Connection, table: sa.Table) -> Sequence[Mapping[Any, Any]]:
    mine: sa.ColumnElement[bool] = sa.true()
    if table.name == "session":
        mine = table.c.kind == "worker"
    elif table.name == "delivery":  # the router has every trigger, too: that is not copied
        mine = table.c.session_id != sessions.router(c)
    return c.execute(sa.select(table).where(mine)).mappings().all()


def copies(c: sa.Connection, own: Rows, first: int, last: int) -> None:
    """Copy the sleeper, and all that belongs to it, under the numbers *first* to *last*."""
    c.execute(sa.text("CREATE TEMPORARY TABLE IF NOT EXISTS numbers (n BIGINT)"))
    c.execute(sa.text("DELETE FROM numbers"))
    into = (
        "INSERT INTO numbers WITH RECURSIVE s(n) AS (SELECT CAST(:first AS bigint)"
        " UNION ALL SELECT n + 1 FROM s WHERE n < :last) SELECT n FROM s"
    )
    c.execute(sa.text(into), {"first": first, "last": last})
    for name, rows in own.items():
        table = schema.METADATA.tables[name]
        for row in rows:
            values = {key: value for key, value in row.items() if not _counts(table, str(key))}
            given = [_expression(c, table, str(key), values[key]) for key in values]
            chosen = sa.select(*given).select_from(sa.table("numbers", sa.column("n")))
            c.execute(table.insert().from_select([str(key) for key in values], chosen))


def _counts(table: sa.Table, name: str) -> bool:
    return table.c[name].autoincrement is True


def _expression(
    c: sa.Connection, table: sa.Table, name: str, value: object
) -> sa.ColumnElement[Any]:
    """Return a copy's value: each id gets the number, each key too, a deadline moves on."""
    number = sa.column("n", sa.BigInteger)
    text = sa.cast(number, sa.String)
    if isinstance(value, str) and value[:2] in KINDS and value[2:3] == "_":
        padded = (
            sa.func.printf("%026d", number)
            if c.dialect.name == "sqlite"
            else sa.func.lpad(text, 26, "0")
        )
        return sa.literal(f"{value[:3]}") + padded
    if table.name in {"thread_key", "dedupe"} and name == "key":
        return sa.literal(f"{value}#") + text
    if name == "deadline_ms":
        return sa.literal(value, sa.BigInteger) + number
    return sa.literal(value, table.c[name].type)
