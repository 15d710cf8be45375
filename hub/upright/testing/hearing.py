"""Hearing: what every connector that hears keeps, by webhooks or by listening."""

from __future__ import annotations

import logging
import traceback
from typing import ClassVar, Final

import pytest

from upright.api import ActorKind, ConnectorAuthFailedError, ConnectorError, InboundRequest
from upright.testing.base import Contract, skip, words
from upright.testing.ear import Ear, listening, stop
from upright.testing.outside import forgeries

DAY_S: Final = 86_400.0
TYPED: Final = "deny rq_01k0000000"


class HearingContract(Contract):
    """One trigger for one thing that was said.

    ``unicode_words`` must come through as they are; ``huge_chars`` is the length of a huge text.
    """

    unicode_words: ClassVar[tuple[str, ...]] = ("Grüße", "漢字", "שלום", "😊", "👩🏽‍🚀", "e\u0301")
    huge_chars: ClassVar[int] = 60_000

    async def test_what_is_said_makes_one_trigger_with_its_keys(self) -> None:
        """A trigger has a kind, a thread, keys, the provider's time and what came as it was."""
        async with self.heard() as (outside, ear):
            (told,) = await self.new(ear, outside.say("Please look"))
            assert "Please look" in words(told)
            assert all((told.kind, told.dedupe, told.context.thread, told.raw))
            assert told.occurred_at is None or told.occurred_at.utcoffset() is not None
            assert told.actor.kind is not ActorKind.SELF

    async def test_two_things_said_are_two_triggers_in_their_order(self) -> None:
        """Their keys differ, though the words are the same."""
        async with self.heard() as (outside, ear):
            first, second = await self.new(ear, outside.say("the same"), outside.say("the same"))
            assert set(first.dedupe).isdisjoint(second.dedupe)
            if first.occurred_at and second.occurred_at:
                assert first.occurred_at <= second.occurred_at

    async def test_what_is_told_twice_is_one_trigger(self) -> None:
        """A redelivery carries a key that was seen."""
        async with self.heard() as (outside, ear):
            said = await outside.say("once")
            before = len(ear.context.accepted)
            await ear.hear(said)
            await self.until(ear.context, before + 1)
            again = await self.able(outside.tell_again(said))
            await ear.hear(again)
            (after,) = await self.new(ear, outside.say("afterwards"))
            assert "afterwards" in words(after)
            assert len(ear.context.accepted) == before + 2

    async def test_an_edit_is_no_new_message(self) -> None:
        """It is a trigger of another kind, and names what it edits."""
        async with self.heard() as (outside, ear):
            said = await outside.say("Please lok")
            await ear.hear(said)
            await self.until(ear.context, 1)
            (edited,) = await self.new(ear, outside.edit(said, "Please look"))
            (made, *_) = ear.context.accepted
            assert edited.kind != made.kind
            assert edited.context.edit_of == dict(made.context.facts).get("native_id")
            assert edited.context.thread == made.context.thread

    async def test_a_deletion_is_no_new_message(self) -> None:
        """It is a trigger of another kind, names what is gone and asks for nothing."""
        async with self.heard() as (outside, ear):
            said = await outside.say("a slip")
            await ear.hear(said)
            await self.until(ear.context, 1)
            (gone,) = await self.new(ear, outside.delete(said))
            (made, *_) = ear.context.accepted
            assert gone.kind != made.kind
            assert gone.context.edit_of == dict(made.context.facts).get("native_id")
            assert not gone.content.expects_reply

    async def test_only_new_words_of_a_vouched_author_are_typed(self) -> None:
        """With ``answers`` what is said is ``typed``, whole; an edit is not, nor anything else."""
        async with self.heard() as (outside, ear):
            said = await outside.say(TYPED)
            await ear.hear(said)
            await self.until(ear.context, 1)
            (made, *_) = ear.context.accepted
            answers = ear.connector.capabilities().answers
            assert made.content.typed == (TYPED if answers else "")
            (edited,) = await self.new(ear, outside.edit(said, f"{TYPED} now"))
            assert not edited.content.typed

    async def test_our_own_output_is_ours(self) -> None:
        """It makes no trigger, or one whose actor is SELF."""
        async with self.heard() as (outside, ear):
            await ear.hear(await self.able(outside.say_as_us("Done")))
            before = len(ear.context.accepted)
            await ear.hear(await outside.say("by another"))
            await self.until(ear.context, before + 1)
            ours = [one for one in ear.context.accepted if "by another" not in words(one)]
            assert [one.actor.kind for one in ours] in ([], [ActorKind.SELF])

    async def test_unicode_comes_through(self) -> None:
        """Every word is in the trigger as it was written."""
        async with self.heard() as (outside, ear):
            (told,) = await self.new(ear, outside.say(" ".join(self.unicode_words)))
            missing = [word for word in self.unicode_words if word not in words(told)]
            assert not missing

    async def test_a_huge_text_is_one_trigger(self) -> None:
        """Whole or as an excerpt; nothing breaks, and the next is heard."""
        async with self.heard() as (outside, ear):
            text = "begin " + "x" * self.huge_chars
            (told,) = await self.new(ear, outside.say(text))
            assert "begin" in words(told)
            assert len(await self.new(ear, outside.say("afterwards"))) == 1

    @pytest.mark.parametrize("days", [1, -1])
    async def test_a_jump_of_the_clock_loses_and_repeats_nothing(self, days: int) -> None:
        """What is said after the wall clock jumped is heard once."""
        async with self.heard() as (outside, ear):
            await self.new(ear, outside.say("before"))
            ear.context.jump(days * DAY_S)
            (told,) = await self.new(ear, outside.say("behind"))
            assert "behind" in words(told)
            assert len(ear.context.accepted) == 2

    async def test_a_missing_secret_is_named(self) -> None:
        """Without its secrets it does not start, and says which it misses."""
        async with self.stage() as (outside, context):
            if not context.secrets:
                skip("it needs no secret")
            named = tuple(context.secrets)
            context.secrets.clear()
            connector = outside.connector()
            with pytest.raises(ConnectorAuthFailedError) as failed:
                await connector.start(context)
            assert any(name in str(failed.value) for name in named)
            await stop(connector)

    async def test_a_live_check_signs_in(self) -> None:
        """``validate`` says in a sentence that all is well."""
        async with self.heard() as (_, ear):
            probe = await ear.connector.validate()
            assert probe.ok
            assert probe.summary

    async def test_secrets_stand_in_no_log_and_in_no_error(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Not at DEBUG, not in what it raises, not in what it prints as."""
        caplog.set_level(logging.DEBUG)
        said: list[str] = []
        async with self.stage() as (outside, context):
            async with listening(outside, context) as ear:
                saying = await outside.say("hello")
                await ear.hear(saying)
                said += [await _refusal(ear, one) for one in forgeries(outside, saying)]
                await ear.connector.validate()
                said.append(repr(ear.connector) + str(ear.connector.health()))
            shown = "\n".join([caplog.text, *said, *map(repr, context.emitted)])
            spilt = [name for name, secret in context.secrets.items() if secret in shown]
            assert not spilt

    async def test_neighbours_are_bounded_and_in_order(self) -> None:
        """At most so many on each side, the nearest, oldest first."""
        async with self.heard() as (outside, ear):
            if not ear.connector.capabilities().neighbours:
                skip("the service has no history to ask")
            told = await self.new(ear, *(outside.say(f"word {n}") for n in range(5)))
            around = await ear.connector.neighbours(told[2], 1, 1)
            assert ["word 1" in one.text for one in around.before] == [True]
            assert ["word 3" in one.text for one in around.after] == [True]


async def _refusal(ear: Ear, request: InboundRequest) -> str:
    """Return all that a connector says when it refuses a request."""
    try:
        await ear.connector.receive(request)
    except ConnectorError as error:
        return "".join(traceback.format_exception(error))
    return ""
