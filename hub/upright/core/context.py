"""Context: what the model is shown of a trigger, a job or a work item; foreign text can't escape.

Text from outside stands in a block (see ``material``). Headers are made of ids and enums only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from upright.api import Channel, Trigger
from upright.core.graphemes import beginning
from upright.core.mandate import instructs
from upright.core.material import block, escaped
from upright.core.trigger import StoredTrigger
from upright.core.work import WorkItem

TRIGGER_CAP_BYTES: Final = 2 * 1024
BATCH_CAP_BYTES: Final = 12 * 1024
LEAST_SHARE_BYTES: Final = 256  # of a batch: 48 triggers have a block each
NAME_CAP_BYTES: Final = 200
MAX_FACTS: Final = 30
_WORD: Final = re.compile(r"[a-z_]{1,24}")
_KIND: Final = re.compile(r"[a-z_]{1,24}(\.[a-z_]{1,24}){0,2}")
NO_HINTS: Final[Mapping[str, str]] = MappingProxyType({})


def cut(text: str, cap_bytes: int, *, where: str) -> str:
    """Cut *text* to *cap_bytes* of UTF-8 between characters, the notice inside the cap (B7.3)."""
    raw = text.encode()
    if len(raw) <= cap_bytes:
        return text
    notice = f" […cut: {len(raw)} bytes in all; read({where!r}) has the rest]"
    room = max(cap_bytes - len(notice.encode()), 0)
    kept = len(raw[:room].decode(errors="ignore"))
    return beginning(text, kept) + notice


def trigger_body(stored: StoredTrigger, cap_bytes: int = TRIGGER_CAP_BYTES) -> dict[str, Any]:
    """Return what the model reads of a trigger, in B7.2's order."""
    trigger, context = stored.trigger, stored.trigger.context
    code = context.code
    by = trigger.actor.name or trigger.actor.id
    body: dict[str, Any] = {"by": by[:NAME_CAP_BYTES], **_own_kind(stored)}
    if trigger.content.title:
        body["title"] = cut(trigger.content.title, 200, where=stored.id)
    if code is not None:
        known = {"repository": code.repository, "sha": code.sha, "branch": code.branch}
        body["code"] = {key: value for key, value in known.items() if value}
        if code.number is not None:
            body["code"]["number"] = code.number
        if code.fork:
            body["code"]["fork"] = True
    if context.facts:
        body["facts"] = _facts(stored)
    if context.edit_of:
        body["edit_of"] = context.edit_of
    if stored.edits:  # an edit or a deletion, which the kind says: no new request (B1.4)
        body["changes"] = stored.edits
    if context.links:
        body["links"] = [link[: 2 * NAME_CAP_BYTES] for link in context.links[:5]]
    body["text"] = cut(trigger.content.text, cap_bytes, where=stored.id)
    if trigger.content.full:
        body["left_out"] = f"what it quotes; read({stored.id!r}) has it"
    return body


def _facts(stored: StoredTrigger) -> dict[str, str | list[str]]:
    """Return facts by name; a name that comes more than once (labels) has a list."""
    told: dict[str, list[str]] = {}
    for name, value in stored.trigger.context.facts[:MAX_FACTS]:
        told.setdefault(name, []).append(cut(value, NAME_CAP_BYTES, where=stored.id))
    return {name: values[0] if len(values) == 1 else values for name, values in told.items()}


def batch(triggers: Sequence[StoredTrigger], hints: Mapping[str, str] = NO_HINTS) -> str:
    """Render what came, oldest first, numbered (B8.4): each has its line, however many there are.

    *hints* say by a trigger's id what the hub knows of it, in ids alone. The blocks share the
    batch's cap. Where a share is too small to say anything, the line alone stands, with the id to
    read.
    """
    share = BATCH_CAP_BYTES // max(len(triggers), 1)
    parts = []
    for number, stored in enumerate(triggers, start=1):
        head = f"[{number} of {len(triggers)}] {_header(stored)}"
        if stored.id in hints:
            head += f" ({hints[stored.id]})"
        shown = _share(stored, min(share, TRIGGER_CAP_BYTES))
        parts.append(f"{head}\n{shown}" if shown else f"{head} (read {stored.id})")
    return "\n\n".join(parts)


def _kind(trigger: Trigger) -> str:
    """Return the kind as far as a payload has no hand in it; a webhook's may be made of that."""
    first = trigger.kind.partition(".")[0]
    if trigger.channel is not Channel.WEBHOOK and _KIND.fullmatch(trigger.kind):
        return trigger.kind
    return first if _WORD.fullmatch(first) else "other"


def _own_kind(stored: StoredTrigger) -> dict[str, str]:
    """Return the kind for the block, where the header doesn't have all of it."""
    kind = stored.trigger.kind
    if _kind(stored.trigger) == kind:
        return {}
    return {"kind": cut(kind, NAME_CAP_BYTES, where=stored.id)}


def _header(stored: StoredTrigger) -> str:
    actor = stored.trigger.actor
    role = "instruction" if instructs(actor.kind) else "material"
    return (
        f"trigger {stored.id} kind={_kind(stored.trigger)} channel={stored.trigger.channel}"
        f" actor={actor.kind} role={role} thread={stored.thread}"
    )


def _share(stored: StoredTrigger, share: int) -> str:
    """Render a trigger's block with what fits of its text; empty when nothing would."""
    if share < LEAST_SHARE_BYTES:
        return ""
    return block(stored.id, stored.trust, trigger_body(stored, share))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a worker may work: the device, its checkout, and a worktree of the worker's own."""

    device: str
    workspace: str
    worktree: str
    branch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What an item has to show: lists of short facts, the newest last; empty ones are left out.

    ``waited_for`` is where it stopped, and how that wait ended; ``woken_by`` is what came.
    """

    woken_by: tuple[str, ...] = ()
    waited_for: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


NOTHING_YET: Final = Progress()


def work_card(
    item: WorkItem,
    place: Place | None,
    progress: Progress = NOTHING_YET,
    *,
    hint: str = "",
    follows: Mapping[str, str] = NO_HINTS,
) -> str:
    """Render the card that a wake begins with (B11.10). *hint* says what is missing, if anything.

    *follows* names the item before this one, with the session that can be read (B6.6).
    The goal and the criteria were written by the router's model from what it read: they are
    escaped like all text.
    """
    card: dict[str, Any] = {
        "item": item.id,
        "goal": item.goal,
        "criteria": list(item.criteria),
        "state": item.state.value,
        "plan": [{"text": step.text, "done": step.done} for step in item.plan],
    }
    if item.reason:
        card["stopped_because"] = item.reason
    if item.evidence:
        card["evidence"] = {one.criterion: one.proof for one in item.evidence}
    card |= {name: list(facts) for name, facts in _facts_of(progress) if facts}
    if follows:
        card["follows"] = dict(follows)
    if item.code is not None:
        code = item.code
        card["code"] = {
            "repository": code.repository,
            "sha": code.sha,
            "branch": code.branch,
            "number": code.number,
        }
    if place is not None:
        card["place"] = {
            "device": place.device,
            "workspace": place.workspace,
            "worktree": place.worktree,
            "branch": place.branch,
        }
    if hint:
        card["note"] = hint
    return f"<card>\n{escaped(card)}\n</card>"


def _facts_of(progress: Progress) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        ("woken_by", progress.woken_by),
        ("waited_for", progress.waited_for),
        ("jobs", progress.jobs),
        ("effects", progress.effects),
        ("children", progress.children),
    )
