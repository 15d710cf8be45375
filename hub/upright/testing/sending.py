"""Sending: an effect becomes visible once, whatever the service does meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import pytest

from upright.api import (
    ActorKind,
    ConnectorError,
    ConnectorNotReadyError,
    Destination,
    Effect,
    PermanentSendError,
    RetryableSendError,
    UnknownSendError,
)
from upright.testing.base import Contract, skip, words
from upright.testing.outside import CannotError, Outside

TEXT: Final = "Done: Grüße 😊"


class SendingContract(Contract):
    """What the connector sends by its own account."""

    async def test_an_effect_becomes_visible_and_has_a_receipt(self) -> None:
        """The receipt holds the service's id of it."""
        async with self.heard() as (outside, ear):
            receipt = await ear.connector.send(_effect(_destination(outside)))
            assert receipt.provider_id
            assert not receipt.found
            assert _times(TEXT, await self.able(outside.visible())) == 1

    async def test_a_second_try_makes_it_visible_once(self) -> None:
        """The same key is looked for first."""
        async with self.heard() as (outside, ear):
            to = _destination(outside)
            first = await ear.connector.send(_effect(to))
            with suppress(UnknownSendError):  # it can't look: then a person decides, never a guess
                second = await ear.connector.send(_effect(to, tries=1))
                assert second.provider_id == first.provider_id
            assert _times(TEXT, await self.able(outside.visible())) == 1

    async def test_a_lost_answer_makes_no_second_copy(self) -> None:
        """It is found, or it is unknown; sent again it is visible once."""
        async with self.heard() as (outside, ear):
            to = _destination(outside)
            await self.able(outside.lose_answer())
            with suppress(UnknownSendError, RetryableSendError):
                await ear.connector.send(_effect(to))
            with suppress(UnknownSendError):
                await ear.connector.send(_effect(to, tries=1))
            assert _times(TEXT, await self.able(outside.visible())) == 1

    async def test_a_rate_limit_asks_for_a_later_try(self) -> None:
        """Nothing is visible meanwhile; after the time that the service asks for it works."""
        async with self.heard() as (outside, ear):
            to = _destination(outside)
            pause_s = await self.able(outside.limit())
            with pytest.raises(RetryableSendError) as limited:
                await ear.connector.send(_effect(to))
            assert limited.value.after_s is not None
            assert limited.value.after_s >= min(pause_s, 1.0)
            assert _times(TEXT, await self.able(outside.visible())) == 0
            ear.context.pass_time(limited.value.after_s + 1.0)
            await ear.connector.send(_effect(to, tries=1))
            assert _times(TEXT, await self.able(outside.visible())) == 1

    async def test_a_destination_that_is_none_of_ours_is_permanent(self) -> None:
        """No retry will ever help."""
        async with self.heard() as (outside, ear):
            source = _destination(outside).source
            nowhere = Destination(source=source, kind="nowhere", address=(("to", "nobody"),))
            with pytest.raises(PermanentSendError):
                await ear.connector.send(_effect(nowhere))

    async def test_what_is_sent_comes_back_as_ours(self) -> None:
        """An answer of ours never triggers the agent."""
        async with self.heard() as (outside, ear):
            await ear.connector.send(_effect(_destination(outside)))
            before = len(ear.context.accepted)
            await ear.hear(await outside.say("by another"))
            await self.until(ear.context, before + 1)
            back = [one for one in ear.context.accepted if "Grüße" in words(one)]
            assert all(one.actor.kind is ActorKind.SELF for one in back)

    async def test_before_its_start_and_after_its_stop_nothing_is_sent(self) -> None:
        """It is not ready, and says so."""
        async with self.stage() as (outside, context):
            to, connector = _destination(outside), outside.connector()
            with pytest.raises((ConnectorNotReadyError, RetryableSendError)):
                await connector.send(_effect(to))
            await connector.start(context)
            await connector.stop(5.0)
            with pytest.raises((ConnectorNotReadyError, RetryableSendError)):
                await connector.send(_effect(to))

    async def test_an_empty_text_is_refused(self) -> None:
        """By an error of the door, not by a crash."""
        async with self.heard() as (outside, ear):
            with pytest.raises(ConnectorError):
                await ear.connector.send(_effect(_destination(outside), text="  "))


def _destination(outside: Outside) -> Destination:
    try:
        return outside.destination()
    except CannotError as error:
        skip(str(error))


def _effect(to: Destination, *, text: str = TEXT, tries: int = 0) -> Effect:
    return Effect(id="ob_1", destination=to, text=text, idempotency_key="key--1", tries=tries)


def _times(text: str, visible: Sequence[str]) -> int:
    return sum(text in one for one in visible)
