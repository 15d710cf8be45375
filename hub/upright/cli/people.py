"""``upright people`` and ``upright sub``: who is who, and who follows what (B6)."""

from __future__ import annotations

import click

from upright.cli import render
from upright.cli.links import whole_link
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms


@click.group()
def people() -> None:
    """List people; join one person's ids over sources."""


@people.command("ls")
@as_json
@pass_place
def people_ls(place: Place, as_json: bool) -> None:
    """List people by name: kind, ids, and where they were named."""
    rows = _with_roles(place.hub.get("v1", "people"), _accounts(place))
    if as_json:
        render.emit_json(rows)
        return
    columns: tuple[render.Column, ...] = (
        ("NAME", lambda row: row["name"]),
        ("KIND", lambda row: row["kind"]),
        ("ROLE", lambda row: row["role"]),
        ("FROM", lambda row: "the file" if row["configured"] else "added"),
        ("IDS", lambda row: ", ".join(row["ids"])),
    )
    render.emit_table(rows, columns, empty="Nobody yet: upright people add NAME --kind member")


def _accounts(place: Place) -> list[render.Row]:
    """Return the accounts; none for who may not see them."""
    if place.hub.get("v1", "me")["role"] != "admin":
        return []
    found: list[render.Row] = place.hub.get("v1", "accounts")
    return found


def _with_roles(
    rows: list[dict[str, object]], accounts: list[render.Row]
) -> list[dict[str, object]]:
    """Put roles beside people; an account that is nobody's in [people] has a line of its own."""
    roles = {each["name"]: _role(each) for each in accounts}
    known = {row["name"] for row in rows}
    others = [
        {"name": name, "kind": "", "ids": [], "configured": False}
        for name in sorted(roles)
        if name not in known
    ]
    return [{**row, "role": roles.get(str(row["name"]), "")} for row in [*rows, *others]]


def _role(account: render.Row) -> str:
    if account["revoked"]:
        return "revoked"
    return f"{account['role']}+exec" if account["runs"] else str(account["role"])


@people.command()
@click.argument("name")
@click.argument("role", type=click.Choice(["viewer", "operator", "admin"]))
@click.option("--exec/--no-exec", "runs", default=False, help="May let commands run on devices.")
@as_json
@pass_place
def role(place: Place, *, name: str, role: str, runs: bool, as_json: bool) -> None:
    """Let a person sign in, as ROLE; without --exec no command runs by their word."""
    body = {"role": role, "exec": "yes" if runs else "no"}
    done = place.hub.post("v1", "accounts", name, "give", **body)
    render.emit_done(done, f"{name} is {role}; now: upright people link-in {name}", as_json=as_json)


@people.command("link-in")
@click.argument("name")
@as_json
@pass_place
def link_in(place: Place, name: str, as_json: bool) -> None:
    """Make a one-time link by which a person signs in."""
    done = place.hub.post("v1", "accounts", name, "link")
    render.emit_done(done, whole_link(place, done["url"]), as_json=as_json)


@people.command()
@click.argument("name")
@as_json
@pass_place
def revoke(place: Place, name: str, as_json: bool) -> None:
    """Take everything away from a person at once: browsers, tokens, open streams."""
    done = place.hub.post("v1", "accounts", name, "revoke")
    render.emit_done(done, f"{name} is out.", as_json=as_json)


@people.command()
@click.argument("name")
@click.option(
    "--kind", type=click.Choice(["operator", "member", "contact"]), required=True, help="Who it is."
)
@as_json
@pass_place
def add(place: Place, name: str, kind: str, as_json: bool) -> None:
    """Add a person, who has no id yet."""
    done = place.hub.post("v1", "people", name=name, kind=kind)
    if as_json:
        render.emit_json(done)
    else:
        click.echo(f"{name} is a {kind}; now: upright people link {name} SOURCE:ID")


@people.command()
@click.argument("name")
@click.argument("key", metavar="SOURCE:ID")
@as_json
@pass_place
def link(place: Place, name: str, key: str, as_json: bool) -> None:
    """Say that an id is this person's; *:ID is theirs in every source."""
    done = place.hub.post("v1", "people", "link", name=name, id=key)
    if as_json:
        render.emit_json(done)
    else:
        click.echo(f"{key} is {name}, from the next trigger on")


# ------------------------------------------------------------------ who follows what
@click.group()
def sub() -> None:
    """List, add and remove subscriptions: which worker follows which thread."""


@sub.command("ls")
@as_json
@pass_place
def sub_ls(place: Place, as_json: bool) -> None:
    """List subscriptions of workers that live, the newest first."""
    rows = place.hub.get("v1", "follows")
    if as_json:
        render.emit_json(rows)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("WORK", lambda row: row["work_id"]),
        ("THREAD", lambda row: row["thread_id"]),
        ("SINCE", lambda row: render.age(row["created_at_ms"], now)),
        ("LAST", lambda row: render.age(row["last_at_ms"], now)),
        ("TITLE", lambda row: row["title"]),
    )
    render.emit_table(rows, columns, empty="Nobody follows a thread.")


@sub.command("add")
@click.argument("worker")
@click.argument("thread")
@as_json
@pass_place
def sub_add(place: Place, worker: str, thread: str, as_json: bool) -> None:
    """Let a WORKER (a session or a work item) follow a THREAD (or that of a trigger)."""
    done = place.hub.post("v1", "follows", session=worker, thread=thread)
    if as_json:
        render.emit_json(done)
    else:
        said = "follows" if done["joined"] else "followed already"
        click.echo(f"{done['session']} {said} {done['thread']}")


@sub.command("rm")
@click.argument("worker")
@click.argument("thread")
@as_json
@pass_place
def sub_rm(place: Place, worker: str, thread: str, as_json: bool) -> None:
    """Let it follow the thread no more; what it has not read there goes to the router."""
    done = place.hub.post("v1", "follows", "leave", session=worker, thread=thread)
    if as_json:
        render.emit_json(done)
    else:
        click.echo(f"{done['session']} follows {done['thread']} no more")
