"""Consent: what waits for the owner's word; silence is a no, and what was shown is what runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from upright_execd.errors import NotFoundError
from upright_execd.rules import Rule
from upright_wire.spec import Confinement


class Answer(StrEnum):
    """The owner's word on one command."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One command as the owner is asked about it; ``reason`` is the rule that wants to know.

    ``program`` is the real path of what would run.
    """

    command_id: str
    digest: str
    argv: tuple[str, ...]
    cwd: str
    reason: Rule
    env: tuple[tuple[str, str], ...] = ()
    stdin_bytes: int = 0
    confinement: Confinement = Confinement.NONE
    program: str = ""
    secrets: tuple[tuple[str, str], ...] = ()


class Consent:
    """The open questions, in the order in which they came."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Question, asyncio.Future[Answer]]] = {}

    def questions(self) -> tuple[Question, ...]:
        """Return what is open."""
        return tuple(question for question, _ in self._open.values())

    async def ask(self, question: Question, timeout_s: float, on_asked: Callable[[], None]) -> Rule:
        """Wait for the owner; return OWNER_ALLOWED, OWNER_DENIED or OWNER_SILENT.

        *on_asked* is called once the question can be seen. A caller that is cancelled withdraws it.
        """
        answer = asyncio.get_running_loop().create_future()
        self._open[question.command_id] = (question, answer)
        on_asked()
        try:
            async with asyncio.timeout(timeout_s):
                said = await answer
        except TimeoutError:
            return Rule.OWNER_SILENT
        finally:
            del self._open[question.command_id]
        return Rule.OWNER_ALLOWED if said is Answer.ALLOW else Rule.OWNER_DENIED

    def answer(self, name: str, said: Answer, *, digest: str | None = None) -> Question:
        """Answer the question about the command whose id begins with *name*.

        With *digest*, only if that is what was asked about: nothing is allowed that wasn't shown.

        Raises:
            NotFoundError: no question, several, an answered one, or another digest.
        """
        found = [pair for key, pair in self._open.items() if key.startswith(name)]
        found = [pair for pair in found if digest in {None, pair[0].digest}]
        if len(found) != 1 or found[0][1].done():
            sentence = (
                f"{'Several questions wait' if found[1:] else 'No question waits'} for {name}."
            )
            raise NotFoundError(sentence, advice="Run: execd consent ls")
        question, answer = found[0]
        answer.set_result(said)
        return question
