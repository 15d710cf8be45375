"""Talk: merge requests and notes.

Source: docs.gitlab.com, "Webhook events", "Merge request events" and "Comment events".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from upright.api import Address, Channel, Code, Content, Context, Trigger
from upright.kit.payload import Json
from upright_ci.gitlab.event import Event, clone_urls, facts, stamp, stripped, when

KINDS: Final[Mapping[str, str]] = {
    "open": "pr.opened",
    "close": "pr.closed",
    "reopen": "pr.reopened",
    "merge": "pr.merged",
    "approved": "review.submitted",
    "approval": "review.submitted",
    "unapproved": "review.dismissed",
    "unapproval": "review.dismissed",
}
_APPROVED: Final = frozenset({"approved", "approval"})
_ONCE: Final = frozenset({"open", "merge"})
_TEXT: Final = frozenset({"title", "description"})


def merge_request(event: Event) -> Trigger:
    """Translate ``merge_request``."""
    about = stripped(event.payload.part("object_attributes"))
    action, pushed = about.maybe_text("action"), bool(about.maybe_text("oldrev"))
    changes = event.payload.maybe_part("changes")
    changed = sorted(changes.value) if changes else []
    edited = action == "update" and not pushed and not _TEXT.isdisjoint(changed)
    updated = "pr.synchronize" if pushed else "pr.edited" if edited else "pr.updated"
    kind = KINDS.get(action, updated)
    text, native = about.maybe_text("description"), f"mr:{about.number('id')}"
    asked = event.address(text) if action in {"open", "update"} else Address.NONE
    version = "" if action in _ONCE else stamp(when(about, "updated_at"))
    return Trigger(
        kind=kind,
        channel=Channel.CI,
        actor=event.user(),
        content=Content(
            title=about.maybe_text("title") or f"!{_iid(about)}",
            text=text,
            expects_reply=action == "open" and asked is not Address.NONE,
        ),
        context=_context(
            event,
            about,
            address=asked,
            edit_of=native if edited else "",
            more={
                "action": action,
                "native_id": native if action == "open" else "",
                "changed": ",".join(changed),
                "state": "approved" if action in _APPROVED else about.maybe_text("state"),
            },
        ),
        dedupe=(f"{native}:{action or 'changed'}:{version}:{about.maybe_text('oldrev')}",),
        occurred_at=when(about, "created_at" if action == "open" else "updated_at", "created_at"),
    )


def note(event: Event) -> Trigger | None:
    """Translate ``note``, on a merge request or an issue; None for GitLab's own notes."""
    said = event.payload.part("object_attributes")
    request = event.payload.maybe_part("merge_request")
    issue = event.payload.maybe_part("issue")
    about = request or issue
    if said.flag("system") or about is None:
        return None
    text, which = said.maybe_text("note"), said.number("id")
    edited = said.maybe_text("action") == "update"
    changed = stamp(when(said, "updated_at")) if edited else ""
    address, where = event.address(text), said.maybe_part("position")
    more = {
        "action": said.maybe_text("action") or "create",
        "native_id": f"note:{which}",
        "on": "pr" if request else "issue",
        "discussion": said.maybe_text("discussion_id"),
        "path": where.maybe_text("new_path") if where else "",
        "line": str(where.maybe_number("new_line") or "") if where else "",
    }
    edit_of = f"note:{which}" if edited else ""
    context = _context(event, about, address=address, edit_of=edit_of, more=more, issue=not request)
    what = "review_comment" if where else "comment"
    return Trigger(
        kind=f"{what}.{'edited' if edited else 'created'}",
        channel=Channel.CI,
        actor=event.user(),
        content=Content(
            title=about.maybe_text("title"),
            text=text,
            expects_reply=not edited and address is not Address.NONE,
        ),
        context=context,
        dedupe=(f"note:{which}:{changed}",),
        occurred_at=when(said, "updated_at" if edited else "created_at"),
    )


def _context(
    event: Event,
    about: Json,
    *,
    address: Address,
    edit_of: str,
    more: Mapping[str, str],
    issue: bool = False,
) -> Context:
    """Return the context of whatever happens at a merge request, or at an issue."""
    place, iid = event.place, _iid(about)
    if issue:
        code = Code(repository=place.repository, urls=clone_urls(event.payload), number=iid)
        return Context(
            thread=place.issue(iid),
            reply_to=event.note_on("issues", iid),
            address=address,
            code=code,
            edit_of=edit_of,
            facts=facts(repository=place.repository, **more),
        )
    source, last = about.maybe_part("source"), about.maybe_part("last_commit")
    head = source.maybe_text("path_with_namespace") if source else ""
    fork = _is_fork(about, head, place.repository)
    sha, branch = last.maybe_text("id") if last else "", about.maybe_text("source_branch")
    link = about.maybe_text("url")
    commit = (place.sha(sha, fork=fork),) if sha else ()
    return Context(
        thread=place.number(iid),
        joins=(*commit, *(place.branch(branch, head) if head or not fork else ())),
        reply_to=event.note_on("merge_requests", iid),
        address=address,
        links=tuple(filter(None, (link,))),
        code=Code(
            repository=place.repository,
            urls=clone_urls(event.payload),
            sha=sha,
            branch=branch,
            number=iid,
            fork=fork,
        ),
        edit_of=edit_of,
        facts=facts(
            repository=place.repository,
            branch=branch,
            base=about.maybe_text("target_branch"),
            sha=sha,
            number=str(iid),
            url=link,
            branch_keys=place.branches(),
            fork="yes" if fork else "",
            draft="yes" if about.flag("draft") or about.flag("work_in_progress") else "",
            **more,
        ),
    )


def _is_fork(about: Json, head: str, repository: str) -> bool:
    """Tell whether the head was pushed elsewhere; one that nobody names counts as that."""
    source, target = (about.maybe_number(f"{end}_project_id") for end in ("source", "target"))
    if source is None and target is None:
        return head.lower() != repository.lower()
    return source is None or source != target


def _iid(about: Json) -> int:
    """Return the number that people see; the address ends with it where the field is not there."""
    iid = about.maybe_number("iid")
    if iid is not None:
        return iid
    last = about.maybe_text("url").rstrip("/").rpartition("/")[2]
    return int(last) if last.isascii() and last.isdigit() else about.number("iid")
