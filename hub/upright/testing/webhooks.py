"""Webhooks: what a connector that receives refuses, and how."""

from __future__ import annotations

from typing import Final

import pytest

from upright.api import InboundRequest, TriggerRejectedError
from upright.testing.base import Contract, skip, words
from upright.testing.ear import Ear
from upright.testing.outside import CannotError, Outside, forgeries

RUBBISH: Final = (
    b"",
    b"\x00\xff\xfe",
    b"null",
    b"[]",
    b"{}",
    b'{"a":',
    b"[" * 20_000,
    b'{"text": "\\ud800"}',
)


class WebhookContract(Contract):
    """Every request is verified before it is read; a refusal is a 4xx and stores nothing."""

    async def test_a_forged_request_is_refused(self) -> None:
        """Another body, no body, no signature: 401 or 403, and nothing is told of them."""
        async with self.heard() as (outside, ear):
            self._receives(ear)
            said = await outside.say("genuine")
            for forged in forgeries(outside, said):
                with pytest.raises(TriggerRejectedError) as refused:
                    await ear.connector.receive(forged)
                assert refused.value.status in {400, 401, 403}
            assert len(await ear.hear(said)) == 1

    async def test_webhooks_out_of_order_are_all_taken(self) -> None:
        """Each tells its own time, so order can be found again."""
        async with self.heard() as (outside, ear):
            self._receives(ear)
            first = await outside.say("first")
            ear.context.pass_time(1)
            second = await outside.say("second")
            later, earlier = await ear.hear(second, first)
            assert ("second" in words(later), "first" in words(earlier)) == (True, True)
            if later.occurred_at and earlier.occurred_at:
                assert earlier.occurred_at < later.occurred_at

    async def test_an_edit_that_overtakes_what_it_edits_is_taken(self) -> None:
        """Both come through, each as what it is."""
        async with self.heard() as (outside, ear):
            self._receives(ear)
            said = await outside.say("Please lok")
            edit = await self.able(outside.edit(said, "Please look"))
            edited, made = await ear.hear(edit, said)
            assert edited.context.edit_of == dict(made.context.facts).get("native_id")
            assert not made.context.edit_of

    async def test_a_body_over_the_cap_is_refused(self) -> None:
        """By 413, before the signature is computed or anything is decoded."""
        async with self.heard() as (outside, ear):
            self._receives(ear)
            (request, *_) = (await outside.say("big")).requests
            size = ear.connector.capabilities().max_body_bytes + 1
            with pytest.raises(TriggerRejectedError) as refused:
                await ear.connector.receive(
                    InboundRequest(headers=request.headers, body=b" " * size)
                )
            assert refused.value.status == 413

    async def test_signed_rubbish_is_refused_or_ignored(self) -> None:
        """Whoever knows the secret may still send nonsense; nothing breaks."""
        async with self.heard() as (outside, ear):
            self._receives(ear)
            for body in RUBBISH:
                request = _signed(outside, body)
                assert await _refused_by(ear, request) in range(400, 500)

    def _receives(self, ear: Ear) -> None:
        if not ear.connector.capabilities().receives:
            skip("it receives no webhooks")


async def _refused_by(ear: Ear, request: InboundRequest) -> int:
    """Return the status of a refusal; 499 when it made no trigger, 0 when it made one."""
    try:
        told = await ear.connector.receive(request)
    except TriggerRejectedError as refused:
        return refused.status
    return 0 if told else 499


def _signed(outside: Outside, body: bytes) -> InboundRequest:
    try:
        return outside.sign(body)
    except CannotError as error:
        skip(str(error))
