"""Sending, over a real SMTP server and a real Sent folder: once, or known not to be known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from email import message_from_bytes
from email.message import Message
from email.policy import default

import pytest

from fixtures.dovecot import Postbox
from fixtures.eventually import eventually
from fixtures.mail import ANN, US, context, mail, told
from fixtures.postbox import listening, put, using
from fixtures.smtp import DROP, HANG, LOSE, Taker, smtp_serving
from upright.api import (
    ConnectorAuthFailedError,
    Destination,
    Effect,
    PermanentSendError,
    RetryableSendError,
    UnknownSendError,
)
from upright.testing.context import MemoryContext
from upright_mail.connector import MailConnector
from upright_mail.settings import MailSettings

SENT = "Sent"


@dataclass(slots=True)
class Bench:
    """A started connector, the server that it sends by, its own mailbox and its clock."""

    connector: MailConnector
    taker: Taker
    postbox: Postbox
    memory: MemoryContext
    keys: MailSettings

    async def restart(self) -> None:
        """Forget everything, as after a crash."""
        await self.connector.stop(5.0)
        self.connector = MailConnector("post", self.keys)
        await self.connector.start(self.memory)

    def letters(self) -> list[Message]:
        return [message_from_bytes(raw, policy=default) for raw in self.taker.taken]

    async def sent(self) -> list[Message]:
        raws = await asyncio.to_thread(self.postbox.raw, SENT)
        return [message_from_bytes(raw, policy=default) for raw in raws]


@asynccontextmanager
async def bench(
    postbox: Postbox, *, sent_folder: str = SENT, answers_per_hour: int = 12
) -> AsyncIterator[Bench]:
    memory = context()
    async with smtp_serving() as taker:
        keys = using(
            postbox,
            smtp_port=taker.port,
            sent_folder=sent_folder,
            answers_per_hour=answers_per_hour,
        )
        made = Bench(MailConnector("post", keys), taker, postbox, memory, keys)
        await made.connector.start(memory)
        try:
            yield made
        finally:
            await made.connector.stop(5.0)


def answer(*, to: bytes = b"", key: str = "key-1", text: str = "Done: Grüße.") -> Effect:
    """Make the answer to a mail."""
    destination = told(to or mail()).context.reply_to
    assert destination is not None
    return Effect(id="ob_1", destination=destination, text=text, idempotency_key=key)


def again(effect: Effect, tries: int = 1) -> Effect:
    return replace(effect, tries=tries)


@pytest.mark.feature("mail.smtp", "mail.loops")
@pytest.mark.clause("B15.1")
async def test_an_answer_is_a_mail_in_the_thread_that_says_what_it_is(postbox: Postbox) -> None:
    asked = mail(References="<a@example.org> <b@example.org>", In_Reply_To="<b@example.org>")
    async with bench(postbox) as made:
        receipt = await made.connector.send(answer(to=asked))
        (letter,) = made.letters()
        (kept,) = await made.sent()
        flags = await asyncio.to_thread(postbox.flags, SENT)
    assert made.taker.to == [ANN]
    assert letter["From"] == f"Harbor Hub <{US}>"
    assert letter["To"] == f"Ann Example <{ANN}>"
    assert letter["Subject"] == "Re: The harbor clock"
    assert letter["In-Reply-To"] == "<m-1@example.org>"
    assert letter["References"] == "<a@example.org> <b@example.org> <m-1@example.org>"
    assert letter["Auto-Submitted"] == "auto-replied"
    assert letter["X-Auto-Response-Suppress"] == "All"
    assert letter["Message-ID"] == receipt.provider_id == kept["Message-ID"]
    body = letter.get_payload(decode=True)
    assert isinstance(body, bytes)
    assert body.decode().strip() == "Done: Grüße."
    assert list(flags.values()) == [(b"\\Seen",)]


@pytest.mark.feature("mail.threading", "mail.smtp")
@pytest.mark.case("SN/765")
async def test_an_answer_to_our_answer_is_in_the_thread_whatever_its_subject(
    postbox: Postbox,
) -> None:
    async with bench(postbox) as made:
        receipt = await made.connector.send(answer())
    asked = told(mail())
    came = told(
        mail(
            Message_ID="<m-2@example.org>",
            In_Reply_To=receipt.provider_id,
            Subject="Something else",
        )
    )
    keys = {came.context.thread, *came.context.joins}
    assert keys & {asked.context.thread, *asked.context.joins}


@pytest.mark.feature("mail.smtp")
@pytest.mark.clause("B15.2")
async def test_a_second_try_finds_the_first(postbox: Postbox) -> None:
    async with bench(postbox) as made:
        first = await made.connector.send(answer())
        await made.restart()
        second = await made.connector.send(again(answer()))
    assert (second.provider_id, second.found) == (first.provider_id, True)
    assert len(made.taker.taken) == 1


@pytest.mark.feature("mail.smtp")
@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        ("450 4.2.0 Greylisted", RetryableSendError),
        ("421 4.3.2 Too busy", RetryableSendError),
        ("550 5.1.1 No such user", PermanentSendError),
        ("530 5.7.0 Sign in first", ConnectorAuthFailedError),
    ],
)
@pytest.mark.parametrize("stage", ["refuse", "end"])
async def test_what_the_server_says_decides(
    postbox: Postbox, refusal: str, error: type[Exception], stage: str
) -> None:
    async with bench(postbox) as made:
        getattr(made.taker, stage).append(refusal)
        with pytest.raises(error, match=refusal[:3]):
            await made.connector.send(answer())
        kept = await made.sent()
    assert made.taker.taken == []
    assert kept == []


@pytest.mark.feature("mail.smtp")
async def test_what_was_refused_for_now_is_sent_once_by_a_later_try(postbox: Postbox) -> None:
    async with bench(postbox) as made:
        made.taker.refuse.append("450 4.2.0 Greylisted")
        with pytest.raises(RetryableSendError) as later:
            await made.connector.send(answer())
        await made.restart()
        receipt = await made.connector.send(again(answer()))
    assert later.value.after_s is not None
    assert not receipt.found
    assert len(made.taker.taken) == 1


@pytest.mark.feature("mail.smtp")
@pytest.mark.clause("B15.2")
@pytest.mark.parametrize(("end", "taken"), [(DROP, 1), (LOSE, 0)])
async def test_a_line_that_breaks_behind_the_letter_leaves_it_unknown(
    postbox: Postbox, end: str, taken: int
) -> None:
    async with bench(postbox) as made:
        made.taker.end.append(end)
        with pytest.raises(UnknownSendError):
            await made.connector.send(answer())
        await made.restart()
        with pytest.raises(UnknownSendError, match="An earlier try"):
            await made.connector.send(again(answer()))
    assert len(made.taker.taken) == taken


@pytest.mark.feature("mail.smtp")
async def test_without_a_sent_folder_a_second_try_is_unknown_but_after_a_refusal(
    postbox: Postbox,
) -> None:
    async with bench(postbox, sent_folder="") as made:
        made.taker.refuse.append("450 4.2.0 Greylisted")
        with pytest.raises(RetryableSendError):
            await made.connector.send(answer())
        await made.connector.send(again(answer()))
        with pytest.raises(UnknownSendError, match="no sent_folder"):
            await made.connector.send(again(answer(), 2))
    assert len(made.taker.taken) == 1


@pytest.mark.feature("mail.smtp")
async def test_a_server_that_is_gone_is_tried_again(postbox: Postbox) -> None:
    async with bench(postbox) as made:
        async with smtp_serving() as other:
            gone = other.port
        keys = using(postbox, smtp_port=gone, sent_folder=SENT)
        connector = MailConnector("post", keys)
        await connector.start(made.memory)
        with pytest.raises(RetryableSendError, match="can't be reached"):
            await connector.send(answer())
        await connector.stop(5.0)


@pytest.mark.feature("mail.loops")
@pytest.mark.case("FS/2445")
async def test_a_thread_is_answered_so_often_and_no_more_in_an_hour(postbox: Postbox) -> None:
    async with bench(postbox, answers_per_hour=2) as made:
        for number in range(2):
            await made.connector.send(answer(key=f"key-{number}"))
        made.memory.pass_time(600)
        with pytest.raises(RetryableSendError) as later:
            await made.connector.send(answer(key="key-3"))
        assert later.value.after_s == 3000
        other = mail(Message_ID="<elsewhere@example.org>", Subject="Another thing")
        await made.connector.send(answer(to=other, key="key-4"))
        made.memory.pass_time(3001)
        await made.connector.send(again(answer(key="key-3")))
    assert len(made.taker.taken) == 4


@pytest.mark.feature("mail.loops")
@pytest.mark.case("FS/2445")
async def test_a_robot_that_hides_what_it_is_is_answered_once_an_hour(postbox: Postbox) -> None:
    async with bench(postbox) as made, listening(made.keys, made.memory) as (connector, _):

        async def heard(own: str, ours: str) -> Effect:
            """Have the robot answer ours; return our answer to that."""
            before = len(made.memory.accepted)
            await put(postbox, mail("Thank you.", Message_ID=own, In_Reply_To=ours))
            *_, told = await made.memory.until(before + 1)
            assert told.context.reply_to is not None
            return replace(answer(key=own), destination=told.context.reply_to)

        receipt = await connector.send(await heard("<r-1@example.org>", ""))
        second = await heard("<r-2@example.org>", receipt.provider_id)
        with pytest.raises(RetryableSendError) as later:
            await connector.send(second)
    assert later.value.after_s == 3600
    assert len(made.taker.taken) == 1


@pytest.mark.feature("mail.smtp")
@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("comment", (("to", ANN),)),
        ("mail", (("to", "nobody"),)),
        ("mail", ()),
        ("mail", (("to", "käse@example.org"),)),
        ("mail", (("to", "a@b@c <x>"), ("message_id", "<m@x>"))),
    ],
)
async def test_what_is_no_address_is_refused(
    postbox: Postbox, kind: str, address: tuple[tuple[str, str], ...]
) -> None:
    nowhere = Destination(source="post", kind=kind, address=address)
    async with bench(postbox, sent_folder="") as made:
        with pytest.raises(PermanentSendError):
            await made.connector.send(replace(answer(), destination=nowhere))


async def test_a_destination_can_add_no_header(postbox: Postbox) -> None:
    parts = (("to", ANN), ("subject", "x\r\nBcc: eve@example.net"), ("name", "A\r\nBcc: e@x.org"))
    place = Destination(source="post", kind="mail", address=parts)
    async with bench(postbox, sent_folder="") as made:
        await made.connector.send(replace(answer(), destination=place))
        (letter,) = made.letters()
    assert letter["Bcc"] is None
    assert made.taker.to == [ANN]


@pytest.mark.feature("mail.smtp")
async def test_a_send_that_is_cut_leaves_no_line_open(postbox: Postbox) -> None:
    async with bench(postbox, sent_folder="") as made:
        made.taker.end.append(HANG)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(made.connector.send(answer()))
            await eventually(lambda: made.taker.taken)
            sending.cancel()
            await asyncio.wait({sending}, timeout=0.1)  # it says farewell to who does not hear
            sending.cancel()
        await eventually(lambda: made.taker.open == 0)
