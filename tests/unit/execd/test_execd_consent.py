from __future__ import annotations

import asyncio

import pytest

from upright_execd.consent import Answer, Consent, Question
from upright_execd.errors import NotFoundError
from upright_execd.rules import Rule


def question(command_id: str = "jb_1") -> Question:
    return Question(
        command_id=command_id, digest="d", argv=("true",), cwd="/", reason=Rule.UNCONFINED
    )


@pytest.mark.clause("E8.4")
@pytest.mark.parametrize(
    ("said", "rule"), [(Answer.ALLOW, Rule.OWNER_ALLOWED), (Answer.DENY, Rule.OWNER_DENIED)]
)
async def test_the_answer_decides(said: Answer, rule: Rule) -> None:
    consent = Consent()
    answered = []
    found = await consent.ask(question(), 5, lambda: answered.append(consent.answer("jb_1", said)))
    assert (found, answered, consent.questions()) == (rule, [question()], ())


@pytest.mark.clause("E8.4")
async def test_silence_is_no_yes() -> None:
    consent = Consent()
    assert await consent.ask(question(), 0, lambda: None) is Rule.OWNER_SILENT
    assert consent.questions() == ()


async def test_who_gives_up_withdraws_the_question() -> None:
    consent = Consent()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await consent.ask(question(), 60, lambda: None)
    assert consent.questions() == ()


@pytest.mark.clause("E8.4")
async def test_a_name_that_fits_two_or_none_or_another_digest_answers_nothing() -> None:
    consent = Consent()

    def while_both_are_open() -> None:
        for name, digest in (("jb_", None), ("jb_3", None), ("jb_1", "other")):
            with pytest.raises(NotFoundError):
                consent.answer(name, Answer.ALLOW, digest=digest)
        consent.answer("jb_2", Answer.DENY, digest="d")
        with pytest.raises(NotFoundError):
            consent.answer("jb_2", Answer.ALLOW)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(consent.ask(question("jb_1"), 60, lambda: None))
        await asyncio.sleep(0)
        assert await consent.ask(question("jb_2"), 60, while_both_are_open) is Rule.OWNER_DENIED
        task.cancel()
