"""Code: pushes and pull requests."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from upright.api import Address, Channel, Content, Context, Trigger
from upright.kit.excerpt import excerpt
from upright.kit.payload import Json
from upright_github.event import Event, names
from upright_github.keys import NO_COMMIT
from upright_github.text import related

MAX_COMMITS: Final = 20  # of a push, the newest: joined by their ids, listed by their messages
_HEADS: Final = "refs/heads/"


def push(event: Event) -> Trigger:
    """Translate ``push``: of a branch, a tag, or their deletion."""
    payload, place = event.payload, event.place
    ref, after = payload.text("ref"), payload.text("after")
    branch = ref.removeprefix(_HEADS) if ref.startswith(_HEADS) else ""
    commits = payload.parts("commits")[-MAX_COMMITS:]
    thread, joins, links = _push_keys(event, ref, commits)
    repository = payload.part("repository")
    at = repository.moment("pushed_at")
    deleted = after == NO_COMMIT
    before, compare = payload.maybe_text("before"), payload.maybe_text("compare")
    titles = [commit.maybe_text("message").partition("\n")[0] for commit in commits]
    return Trigger(
        kind="push",
        channel=Channel.GITHUB,
        actor=event.sender(),
        content=Content(
            title=f"{'deleted ' if deleted else ''}{branch or ref}",
            text=excerpt("\n".join(titles), where=compare),
        ),
        context=Context(
            thread=thread,
            joins=joins,
            related=links,
            links=tuple(filter(None, (compare,))),
            code=event.code(sha="" if deleted else after, branch=branch),
            facts=event.facts(
                ref=ref,
                branch=branch,
                sha=after,
                before=before,
                forced="yes" if payload.flag("forced") else "",
                created="yes" if payload.flag("created") else "",
                deleted="yes" if deleted else "",
            ),
        ),
        # The time, because a branch can be pushed from A to B, back, and to B again.
        dedupe=(f"push:{place.base}:{ref}:{before}:{after}:{at.isoformat() if at else ''}",),
        occurred_at=at,
    )


def _push_keys(
    event: Event, ref: str, commits: tuple[Json, ...]
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return (thread, joins, related).

    Only commits that are new to the repository join: a branch made from an old commit, without one
    of its own, has nothing to do with whoever pushed that one.
    """
    place, after = event.place, event.payload.text("after")
    if not ref.startswith(_HEADS):
        return place.ref(ref), (), ()
    head = () if after == NO_COMMIT else (place.sha(after),)
    branch = place.branch(ref.removeprefix(_HEADS))
    if not branch:
        return head[0] if head else place.ref(ref), (), ()
    new = [place.sha(commit.text("id")) for commit in commits if commit.flag("distinct")]
    return branch[0], tuple(new), tuple(key for key in head if key not in new)


def pull_request(event: Event) -> Trigger:
    """Translate ``pull_request``."""
    pull = event.payload.part("pull_request")
    merged = event.action == "closed" and pull.flag("merged")
    text = pull.maybe_text("body")
    address = _asked(event) or (
        event.address(text) if event.action in {"opened", "edited"} else Address.NONE
    )
    native = f"pr:{pull.number('id')}"
    facts = {"changed": _changed(event), "native_id": native if event.action == "opened" else ""}
    context = pull_context(event, pull, text, address=address, facts=facts)
    return Trigger(
        kind=f"pr.{'merged' if merged else event.action}",
        channel=Channel.GITHUB,
        actor=event.sender(),
        content=Content(
            title=pull.text("title"),
            text=text,
            expects_reply=event.action != "edited" and address is not Address.NONE,
        ),
        context=replace(context, edit_of=native if event.action == "edited" else ""),
        dedupe=(f"pr:{pull.number('id')}:{event.action}:{_changed(event)}:{_version(pull)}",),
        occurred_at=_when(event, pull),
    )


def pull_context(
    event: Event, pull: Json, text: str, *, address: Address, facts: dict[str, str]
) -> Context:
    """Return the context of whatever happens at a pull request."""
    place, number = event.place, pull.number("number")
    head = pull.part("head")
    repo, sha, branch = head.maybe_part("repo"), head.text("sha"), head.text("ref")
    full_name = repo.text("full_name") if repo else ""  # a fork may have been deleted
    fork = not place.same(full_name)
    default = repo.maybe_text("default_branch") if repo else ""
    thread, link = place.number(number), pull.maybe_text("html_url")
    keys = place.branch(branch, full_name, head_default=default) if full_name else ()
    common = {
        "author": event.account(pull.maybe_part("user")).id,
        "branch": branch,
        "base": pull.part("base").maybe_text("ref"),
        "head": full_name,
        "sha": sha,
        "labels": names(pull.parts("labels")),
        "draft": "yes" if pull.flag("draft") else "",
        "fork": "yes" if fork else "",
        "url": link,
    }
    return Context(
        thread=thread,
        joins=(place.sha(sha, fork=fork), *keys),
        related=related(text, place, own=thread),
        reply_to=event.comment_on(number),
        address=address,
        links=tuple(filter(None, (link,))),
        code=event.code(sha=sha, branch=branch, number=number, fork=fork),
        facts=event.facts(**common, **facts),
    )


def _asked(event: Event) -> Address | None:
    """Tell whether we were assigned, or asked for a review."""
    key = {"assigned": "assignee", "review_requested": "requested_reviewer"}.get(event.action, "")
    person = event.payload.maybe_part(key)
    if person is None:
        return None
    mine = event.me.is_login(person.text("login"), bot=person.maybe_text("type") == "Bot")
    return Address.DIRECT if mine else None


def _changed(event: Event) -> str:
    """Return what an action was about: the label, the person, the new head."""
    for key, name in (("label", "name"), ("assignee", "login"), ("requested_reviewer", "login")):
        if part := event.payload.maybe_part(key):
            return part.maybe_text(name)
    return event.payload.maybe_text("after")


def _version(pull: Json) -> str:
    return pull.maybe_text("updated_at")


def _when(event: Event, pull: Json) -> datetime | None:
    key = {"opened": "created_at", "closed": "closed_at"}.get(event.action, "updated_at")
    return pull.moment(key) or pull.moment("updated_at")
