"""Talk: issues, comments on issues and pull requests, reviews and their comments."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from upright.api import Actor, ActorKind, Address, Channel, Content, Context, Trigger
from upright.kit.payload import Json
from upright_github.code import pull_context
from upright_github.event import Event, names
from upright_github.text import related


def issues(event: Event) -> Trigger:
    """Translate ``issues``."""
    issue = event.payload.part("issue")
    text = issue.maybe_text("body")
    assignee, label = event.payload.maybe_part("assignee"), event.payload.maybe_part("label")
    whom = event.account(assignee) if assignee else None
    address = event.address(text) if event.action in {"opened", "edited"} else Address.NONE
    if event.action == "assigned" and whom and whom.kind is ActorKind.SELF:
        address = Address.DIRECT
    changed = label.maybe_text("name") if label else whom.id if whom else ""
    version = issue.maybe_text("updated_at")
    opened = event.action == "opened"
    native = f"issue:{issue.number('id')}"
    facts = {"changed": changed, "native_id": native if opened else ""}
    context = _issue_context(event, issue, text, address=address, facts=facts)
    return Trigger(
        kind=f"issue.{event.action}",
        channel=Channel.GITHUB,
        actor=event.sender(),
        content=Content(
            title=issue.text("title"),
            text=text,
            expects_reply=event.action != "edited" and address is not Address.NONE,
        ),
        context=replace(context, edit_of=native if event.action in {"edited", "deleted"} else ""),
        dedupe=(f"issue:{issue.number('id')}:{event.action}:{changed}:{version}",),
        occurred_at=issue.moment("created_at" if opened else "updated_at"),
    )


def issue_comment(event: Event) -> Trigger:
    """Translate ``issue_comment``: on an issue or on a pull request."""
    issue, comment = event.payload.part("issue"), event.payload.part("comment")
    text = comment.maybe_text("body")
    facts = {"native_id": str(comment.number("id")), "url": comment.maybe_text("html_url")}
    context = _issue_context(event, issue, text, address=_addressed(event, text), facts=facts)
    native = str(comment.number("id"))
    return _comment(event, comment, ("comment", native), title=issue.text("title"), context=context)


def review_comment(event: Event) -> Trigger:
    """Translate ``pull_request_review_comment``; lines that a later push changed are null."""
    pull, comment = event.payload.part("pull_request"), event.payload.part("comment")
    text = comment.maybe_text("body")
    line = comment.maybe_number("line")
    native = f"review_comment:{comment.number('id')}"  # the numbers of comments are others'
    facts = {
        "native_id": native,
        "in_reply_to": str(comment.maybe_number("in_reply_to_id") or ""),
        "path": comment.maybe_text("path"),
        "side": comment.maybe_text("side"),
        "line": str(line or ""),
        "original_line": str(comment.maybe_number("original_line") or ""),
        "outdated": "" if line else "yes",
        "diff_hunk": comment.maybe_text("diff_hunk"),
    }
    context = pull_context(event, pull, text, address=_addressed(event, text), facts=facts)
    root = comment.maybe_number("in_reply_to_id") or comment.number("id")
    reply_to = event.reply_on_line(pull.number("number"), root)
    context = replace(context, reply_to=reply_to)
    what = ("review_comment", native)
    return _comment(event, comment, what, title=pull.text("title"), context=context)


def review(event: Event) -> Trigger:
    """Translate ``pull_request_review``: submitted, edited, dismissed."""
    pull, said = event.payload.part("pull_request"), event.payload.part("review")
    text, state = said.maybe_text("body"), said.maybe_text("state").lower()
    native = f"review:{said.number('id')}"
    facts = {"review": str(said.number("id")), "state": state}
    facts["native_id"] = native if event.action == "submitted" else ""
    context = pull_context(event, pull, text, address=_addressed(event, text), facts=facts)
    edited = event.action == "edited"
    key = f"review:{said.number('id')}:{event.action}:{state}"
    return Trigger(
        kind=f"review.{event.action}",
        channel=Channel.GITHUB,
        actor=event.sender(),
        content=Content(title=pull.text("title"), text=text, expects_reply=_asks_anew(event, text)),
        context=replace(context, edit_of=native if edited else ""),
        dedupe=(f"{key}:{pull.maybe_text('updated_at')}" if edited else key,),
        occurred_at=said.moment("submitted_at"),
    )


def _comment(
    event: Event, comment: Json, which: tuple[str, str], *, title: str, context: Context
) -> Trigger:
    """Translate a comment; *which* is the word for it and its native id."""
    what, native = which
    number, text = comment.number("id"), comment.maybe_text("body")
    created = event.action == "created"
    version = comment.maybe_text("updated_at") if event.action == "edited" else ""
    return Trigger(
        kind=f"{what}.{event.action}",
        channel=Channel.GITHUB,
        actor=_author(event, comment),
        content=Content(title=title, text=text, expects_reply=_asks_anew(event, text)),
        context=replace(
            context,
            edit_of="" if created else native,
            links=tuple(filter(None, (comment.maybe_text("html_url"), *context.links))),
        ),
        dedupe=(f"{what}:{number}:{event.action}:{version}",),
        occurred_at=_when(event, comment),
    )


def _author(event: Event, comment: Json) -> Actor:
    """Return who acted; a person's account used by our own App is ourselves."""
    if event.action == "created" and event.me.is_app(
        comment.maybe_part("performed_via_github_app")
    ):
        return replace(event.sender(), kind=ActorKind.SELF)
    return event.sender()


def _when(event: Event, comment: Json) -> datetime | None:
    """Return when it happened; a deletion's time is not in the payload."""
    if event.action == "deleted":
        return None
    return comment.moment("created_at" if event.action == "created" else "updated_at")


def _addressed(event: Event, text: str) -> Address:
    return Address.NONE if event.action == "deleted" else event.address(text)


def _asks_anew(event: Event, text: str) -> bool:
    """Tell whether a mention is new: an edit of a text that had it asks nothing again (B1.4)."""
    if _addressed(event, text) is Address.NONE:
        return False
    changes = event.payload.maybe_part("changes")
    body = changes.maybe_part("body") if changes else None
    return body is None or event.address(body.maybe_text("from")) is Address.NONE


def _issue_context(
    event: Event, issue: Json, text: str, *, address: Address, facts: dict[str, str]
) -> Context:
    number, link = issue.number("number"), issue.maybe_text("html_url")
    thread = event.place.number(number)
    pull = issue.maybe_part("pull_request") is not None
    common = {
        "author": event.account(issue.maybe_part("user")).id,
        "labels": names(issue.parts("labels")),
        "on": "pr" if pull else "issue",
        "url": link,
    }
    return Context(
        thread=thread,
        related=related(text, event.place, own=thread),
        reply_to=event.comment_on(number),
        address=address,
        links=tuple(filter(None, (link,))),
        code=event.code(number=number),
        facts=event.facts(**{**common, **facts}),
    )
