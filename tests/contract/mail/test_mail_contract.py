"""Mail keeps the contract of connectors, against a real Dovecot and a real SMTP server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import default
from itertools import count

import pytest

from fixtures.black_hole import BlackHole, black_hole
from fixtures.dovecot import Dovecot, Postbox
from fixtures.mail import PASSWORD, US, mail, told
from fixtures.postbox import using
from fixtures.smtp import DROP, Taker, smtp_serving
from upright.api import Connector, Destination
from upright.testing.context import MemoryContext
from upright.testing.contract import ConnectorContract
from upright.testing.outside import Outside, Said
from upright_mail.connector import MailConnector


@dataclass(slots=True)
class Post(Outside):
    """One mailbox, reached by a line that can be swallowed, and a server to send by."""

    postbox: Postbox
    hole: BlackHole
    taker: Taker
    numbers: count[int]

    def connector(self) -> Connector:
        keys = using(
            self.postbox, port=self.hole.port, smtp_port=self.taker.port, sent_folder="Sent"
        )
        return MailConnector("contract", keys)

    async def say(self, text: str) -> Said:
        return await self._put(mail(text, Message_ID=f"<s{next(self.numbers)}@example.org>"))

    async def say_as_us(self, text: str) -> Said:
        own = f"<o{next(self.numbers)}@harbor.example.org>"
        return await self._put(mail(text, From=US, Message_ID=own))

    async def tell_again(self, said: Said) -> Said:
        return await self._put(mail("once", Message_ID=said.native))

    async def _put(self, raw: bytes) -> Said:
        await asyncio.to_thread(self.postbox.put, raw)
        return Said(native=str(message_from_bytes(raw)["Message-ID"]))

    def destination(self) -> Destination:
        found = told(mail()).context.reply_to
        assert found is not None
        return found

    async def visible(self) -> Sequence[str]:
        letters = [message_from_bytes(raw, policy=default) for raw in self.taker.taken]
        return [str(letter.get_content()) for letter in letters]

    async def limit(self) -> float:
        self.taker.refuse.append("450 4.7.1 Too many letters")
        return 60.0

    async def lose_answer(self) -> None:
        self.taker.end.append(DROP)

    async def hang(self) -> None:
        self.hole.swallows = True


@pytest.mark.feature("mail.contract")
class TestMail(ConnectorContract):
    @pytest.fixture(autouse=True)
    def server(self, dovecot: Dovecot) -> None:
        type(self).dovecot = dovecot

    dovecot: Dovecot

    @asynccontextmanager
    async def outside(self, context: MemoryContext) -> AsyncIterator[Outside]:
        context.secrets["env:P"] = PASSWORD
        postbox = Postbox(self.dovecot)
        async with black_hole(self.dovecot.port) as hole, smtp_serving() as taker:
            yield Post(postbox, hole, taker, count(1))
