"""State: what a turn knows of its session, in step with the rows that it writes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from upright.core.budget import NOTHING, Used
from upright.core.ids import JobId, WorkId
from upright.core.mandate import Trust
from upright.core.transcript import Message
from upright.store.sessions import Answer, Claim, Loaded


@dataclass(slots=True, kw_only=True)
class Turn:
    """One turn. Whatever is appended to the rows is appended here in the same unit.

    A unit may be run more than once before it is committed, so each run gets a :meth:`draft`;
    the turn itself takes over the last one, after the commit.
    """

    id: str
    claim: Claim
    kind: str
    work: WorkId | None
    taint: Trust
    nudges: int
    failures: int
    generation: int
    prompt_tokens: int
    messages: list[Message]
    answers: dict[str, Answer]
    steps: int = 0
    began_ms: int = 0
    used: Used = NOTHING
    jobs: dict[str, JobId] = field(default_factory=dict)  # open call → its job
    carded: bool = False  # this turn has shown the work card
    declined: frozenset[str] = frozenset()  # questions that no side step answers

    @classmethod
    def of(cls, turn_id: str, claim: Claim, loaded: Loaded) -> Turn:
        """Begin with what is stored."""
        return cls(
            id=turn_id,
            claim=claim,
            kind=loaded.kind,
            work=loaded.work,
            taint=loaded.taint,
            nudges=loaded.nudges,
            failures=loaded.failures,
            generation=loaded.generation,
            prompt_tokens=loaded.prompt_tokens,
            messages=list(loaded.messages),
            answers={answer.call_id: answer for answer in loaded.answers},
        )

    def draft(self) -> Turn:
        """Return a copy that a unit may change."""
        return replace(
            self, messages=[*self.messages], answers={**self.answers}, jobs={**self.jobs}
        )

    def take_over(self, draft: Turn) -> None:
        """Become what a committed unit made of its draft."""
        for each in fields(draft):
            setattr(self, each.name, getattr(draft, each.name))
