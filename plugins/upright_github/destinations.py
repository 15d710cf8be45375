"""Destinations: where an effect goes, and where it goes instead when GitHub won't have it there.

A line that a later push removed can't be answered, nor can one's own pull request be approved:
GitHub says 422. Then the words are said as a review without a verdict, or as a plain comment.

Source: docs.github.com, "Create a reply for a review comment", "Create a review for a pull
request", "Create an issue comment".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from upright.api import Destination, PermanentSendError

COMMENT: Final = "comment"
REVIEW_REPLY: Final = "review_reply"
REVIEW: Final = "review"
KINDS: Final = (COMMENT, REVIEW_REPLY, REVIEW)
VERDICTS: Final = ("COMMENT", "APPROVE", "REQUEST_CHANGES")
INSTEAD: Final = "_In answer to a comment on a line that can't be answered there:_\n\n"
_REPOSITORY: Final = re.compile(r"[\w-][\w.-]{0,99}/[\w.-]{1,100}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to say something: where it is posted, with what, and where it is then found."""

    post: str
    look: str
    fields: Mapping[str, str] = field(default_factory=dict)
    preface: str = ""


def ways(destination: Destination) -> tuple[Way, ...]:
    """Return the ways to a destination, the right one first.

    Raises:
        PermanentSendError: it is none of GitHub's.
    """
    parts: Mapping[str, str] = dict(destination.address)
    repository, number = parts.get("repo", ""), parts.get("number", "")
    fits = _REPOSITORY.fullmatch(repository) and repository.rpartition("/")[2] not in {".", ".."}
    if destination.kind not in KINDS or not fits or not _is_number(number):
        raise _none(destination)
    issue, pull = f"/repos/{repository}/issues/{number}", f"/repos/{repository}/pulls/{number}"
    comment = Way(post=f"{issue}/comments", look=f"{issue}/comments")
    if destination.kind == COMMENT:
        return (comment,)
    if destination.kind == REVIEW_REPLY:
        root = parts.get("comment", "")
        if not _is_number(root):
            raise _none(destination)
        reply = Way(post=f"{pull}/comments/{root}/replies", look=f"{pull}/comments")
        return (reply, Way(post=comment.post, look=comment.look, preface=INSTEAD))
    verdict = parts.get("verdict", VERDICTS[0])
    if verdict not in VERDICTS:
        raise _none(destination)
    verdicts = dict.fromkeys((verdict, VERDICTS[0]))
    reviews = [
        Way(post=f"{pull}/reviews", look=f"{pull}/reviews", fields={"event": one})
        for one in verdicts
    ]
    return (*reviews, comment)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _none(destination: Destination) -> PermanentSendError:
    reason = f"No destination of GitHub: {destination.kind} {dict(destination.address)}"
    return PermanentSendError(reason)
