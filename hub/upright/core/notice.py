"""Notice: what a person is shown in chat of what waits for them, and how to answer it (B14.4).

All that the hub did not say itself stands in fenced blocks that it can't end, and what hides or
turns the direction of reading is written as an escape: people see what they decide on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from upright.api import Destination
from upright.core.mandate import Trust
from upright.core.material import visible
from upright.core.request import RequestKind

MOST_CHARS: Final = 2_500
"""A longer text is not shown in chat, and can't be approved there by what was shown."""
DIGITS: Final = 10
_FENCE: Final = "```"
_NAMES: Final = {
    RequestKind.APPROVAL: "An approval is wanted",
    RequestKind.QUESTION: "A question waits for you",
    RequestKind.ACCEPTANCE: "A finished item waits for your word",
}
_READ: Final = {
    Trust.OPERATOR: "Whoever wrote it had read nothing but what operators and this hub say.",
    Trust.MEMBER: "Whoever wrote it had read what a member or an own job says.",
    Trust.CONTACT: "Whoever wrote it had read what a contact or a listed bot says.",
    Trust.STRANGER: "Whoever wrote it had read what a stranger says, and may follow that.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked: *text* would be sent to *to*; without *to* it is the question itself.

    ``until`` is a time for people; ``is_private`` says that only its owner may see it.
    """

    request: str
    kind: RequestKind
    item: str
    until: str
    text: str = ""
    digest: str = ""
    to: Destination | None = None
    trust: Trust | None = None
    is_private: bool = False


def notice(asked: Asked) -> str:
    """Write the whole message, as Markdown."""
    about = f" ({asked.item})" if asked.item else ""
    head = f"{_NAMES[asked.kind]}{about}: {asked.request}, until {asked.until}."
    if asked.is_private:
        return f"{head}\n\nIt is private to you, so it is not shown here: {_elsewhere(asked)}"
    return "\n\n".join((head, *_shown(asked), *_ways(asked)))


def _shown(asked: Asked) -> tuple[str, ...]:
    read = () if asked.trust is None else (_READ[asked.trust],)
    if len(asked.text) > MOST_CHARS:
        return (*read, f"It has {len(asked.text)} characters, too many to be shown here.")
    if asked.to is None:
        return (*read, _block(asked.text))
    to = {"source": asked.to.source, "kind": asked.to.kind, **dict(asked.to.address)}
    where = _block(json.dumps(to, ensure_ascii=False))
    exactly = ("Exactly this would be sent:", _block(asked.text), "To:", where)
    return (*read, *exactly, f"Its digest: {asked.digest}")


def _ways(asked: Asked) -> tuple[str, ...]:
    """Return the lines to copy, each in a block of its own."""
    approve = _block(f"approve {asked.request} {asked.digest[:DIGITS]}")
    deny = _block(f"deny {asked.request}")
    match asked.kind:
        case RequestKind.APPROVAL if len(asked.text) <= MOST_CHARS:
            return ("Answer here with one of these lines, as the whole message:", approve, deny)
        case RequestKind.APPROVAL:
            return (f"To approve it, {_elsewhere(asked)} To deny it, answer here:", deny)
        case RequestKind.QUESTION:
            answer = _block(f"answer {asked.request} YOUR ANSWER")
            return ("Answer here, as the whole message:", answer)
        case _:
            return (f"To settle it, {_elsewhere(asked)}",)


def _elsewhere(asked: Asked) -> str:
    return f"look at it in the workbench, or: upright requests show {asked.request}"


def _block(text: str) -> str:
    """Fence a text that can't end its fence: three ticks in a row are written as escapes."""
    seen = visible(text).replace("\r", "\\u000d").replace(_FENCE, "\\u0060" * len(_FENCE))
    return f"{_FENCE}\n{seen}\n{_FENCE}"
