"""CI: one shape for whatever ran, wherever it ran (C2).

A run is a workflow, a pipeline, a job, a check or a report of tests. Its triggers have the kinds
and the facts that are made here, so that one rule and one policy hold for every provider:

=============== =================================================================================
fact            what
=============== =================================================================================
``check``       what ran; with the thread it says which earlier run this one follows
``status``      the provider's own word for how far it is
``conclusion``  the provider's own word for how it ended; empty while it runs
``repository``  ``acme/app``
``branch``      the branch, or the tag
``sha``         the commit
``number``      the pull or merge request, where the provider names one
``attempt``     1, 2, …: the same run once more
``url``         where people look at it
``failed``      what failed in it, jobs or tests, a line each
``error``       the first lines that say why
=============== =================================================================================

``ci.fixed`` is made of ``ci.succeeded`` by intake, which knows what the same check said before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from upright.api import Trigger
from upright.kit.mask import masked

QUEUED: Final = "ci.queued"
STARTED: Final = "ci.started"
SUCCEEDED: Final = "ci.succeeded"
FAILED: Final = "ci.failed"
CANCELLED: Final = "ci.cancelled"
FIXED: Final = "ci.fixed"
NEUTRAL: Final = "ci.neutral"
SKIPPED: Final = "ci.skipped"
ACTION_REQUIRED: Final = "ci.action_required"
COMPLETED: Final = "ci.completed"  # it ended, by a word that we don't know

MAX_ERROR_LINES: Final = 10
MAX_LINE_CHARS: Final = 300
MAX_NAMED: Final = 50
_SCANNED_CHARS: Final = 1_048_576
_ANSI: Final = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|section_(?:start|end):\d+:[\w.-]*(?:\[[^\]]*\])?\r?"
)
_STAMP: Final = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT[\d:.]{8,20}Z ", re.MULTILINE | re.ASCII)
_SAYS_WHY: Final = re.compile(
    r"(?<![\w-])(?:error|errors|failed|failure|fatal|exception|panic|traceback|assert"
    r"|undefined reference|not found|no such file|segmentation fault|killed)(?![\w-])"
    r"|\w(?:Error|Exception|Failure)(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What failed in a run: a job, a step or a test, and the first lines that say why."""

    name: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((self.name, *(f"    {line}" for line in self.lines)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One state of one run, as every provider's becomes; see the module for the words."""

    check: str
    repository: str
    status: str
    conclusion: str = ""
    branch: str = ""
    sha: str = ""
    number: int | None = None
    attempt: int | None = None
    url: str = ""
    failures: tuple[Failure, ...] = ()

    @property
    def title(self) -> str:
        """Return the name and the verdict."""
        return f"{self.check}: {(self.conclusion or self.status).replace('_', ' ')}"

    def facts(self) -> dict[str, str]:
        """Return the facts; empty ones are for the caller to leave out."""
        errors = [line for failure in self.failures for line in failure.lines]
        return {
            "check": self.check,
            "repository": self.repository,
            "status": self.status,
            "conclusion": self.conclusion,
            "branch": self.branch,
            "sha": self.sha,
            "number": str(self.number or ""),
            "attempt": str(self.attempt or ""),
            "url": self.url,
            "failed": named(failure.name for failure in self.failures),
            "error": "\n".join(errors[:MAX_ERROR_LINES]),
        }


def explained(trigger: Trigger, failures: Sequence[Failure]) -> Trigger:
    """Return a trigger with what somebody found out about its failure, secrets masked."""
    if not failures:
        return trigger
    lines = [line for failure in failures for line in failure.lines][:MAX_ERROR_LINES]
    found = {
        "failed": named(failure.name for failure in failures),
        "error": masked("\n".join(lines)),
    }
    facts = {**dict(trigger.context.facts), **{key: said for key, said in found.items() if said}}
    shown = masked("\n".join(map(str, failures[:MAX_NAMED])))
    text = "\n\n".join(filter(None, (trigger.content.text, shown)))
    return replace(
        trigger,
        content=replace(trigger.content, text=text),
        context=replace(trigger.context, facts=tuple(facts.items())),
    )


def named(names: Iterable[str]) -> str:
    """Return names, a line each; of very many the first fifty, and how many more there are."""
    every = list(dict.fromkeys(_short(name) for name in names if name.strip()))
    more = [f"… and {len(every) - MAX_NAMED} more"] if len(every) > MAX_NAMED else []
    return "\n".join([*every[:MAX_NAMED], *more])


def first_errors(text: str) -> tuple[str, ...]:
    """Return the first lines of a log or a message that say why; its first ones if none does."""
    lines = [line for line in plain(text).splitlines() if line.strip()]
    telling = [line for line in lines if _SAYS_WHY.search(line[:MAX_LINE_CHARS])]
    return tuple(_short(line) for line in (telling or lines)[:MAX_ERROR_LINES])


def plain(text: str) -> str:
    """Return a log without colours, marks, times and overwritten lines; a bounded piece of it."""
    bare = _STAMP.sub("", _ANSI.sub("", text[:_SCANNED_CHARS]))
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in bare.split("\n"))


def _short(line: str) -> str:
    line = line.strip()
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + "…"
