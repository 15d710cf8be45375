"""Outside: the world around a connector, as the contract moves it; its author fills this in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from upright.api import Connector, Destination, InboundRequest
from upright.testing.context import MemoryContext


class CannotError(Exception):
    """The service has no such thing; the test that needs it is skipped, with this reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What somebody said at the service.

    ``native`` is the service's id of it. ``requests`` are the webhooks by which the service tells
    it, signed; a service that is listened to sends none.
    """

    native: str = ""
    requests: tuple[InboundRequest, ...] = ()


class Outside(ABC):
    """A real server or a strict sandbox. What can't happen there raises :class:`CannotError`.

    ``say`` is anything that makes one new trigger: a comment, a mail, a failed build, an event.
    """

    @abstractmethod
    def connector(self) -> Connector:
        """Return a new connector of the same source, not started."""

    @abstractmethod
    async def say(self, text: str) -> Said:
        """Have a stranger say something new; the trigger's title or text must carry it."""

    async def settled(self, connector: Connector, context: MemoryContext) -> None:
        """Return once the connector listens, so that what is said next is heard.

        One that listens by itself has then stored where it begins: its first cursor.
        """
        if connector.capabilities().listens:
            await context.until_cursor()

    async def edit(self, said: Said, text: str) -> Said:
        """Have the stranger change what was said."""
        del said, text
        raise CannotError("nothing is edited there")

    async def delete(self, said: Said) -> Said:
        """Have the stranger delete what was said."""
        del said
        raise CannotError("nothing is deleted there")

    async def say_as_us(self, text: str) -> Said:
        """Say something by the account that the connector speaks with."""
        del text
        raise CannotError("we have no account there")

    async def tell_again(self, said: Said) -> Said:
        """Have the service tell it once more, as its retries or a second hook do."""
        if said.requests:
            return said
        raise CannotError("the service tells nothing twice")

    def forge(self, request: InboundRequest) -> Sequence[InboundRequest]:
        """Return requests that somebody without the secret could make of a good one."""
        return (
            replace(request, body=request.body + b" "),
            replace(request, body=b""),
            replace(request, headers={"content-type": request.headers.get("content-type", "")}),
        )

    def sign(self, body: bytes) -> InboundRequest:
        """Return a request with any body at all, signed as the service would."""
        del body
        raise CannotError("no body can be signed by hand")

    # -------------------------------------------------------------- what we send
    def destination(self) -> Destination:
        """Return where an answer to what is said goes."""
        raise CannotError("nothing is sent there")

    async def visible(self) -> Sequence[str]:
        """Return what we have made visible there, oldest first."""
        raise CannotError("what we sent can't be seen")

    async def limit(self) -> float:
        """Have the service refuse the next call by a rate limit; return for how many seconds."""
        raise CannotError("the service has no rate limit")

    async def lose_answer(self) -> None:
        """Have the next call take effect, and its answer be lost."""
        raise CannotError("no answer gets lost there")

    async def hang(self) -> None:
        """Have the service be silent from now on: connections open, no answer."""
        raise CannotError("the service can't be made silent")


def forgeries(outside: Outside, said: Said) -> tuple[InboundRequest, ...]:
    """Return what could be forged of the webhooks of something that was said."""
    return tuple(forged for request in said.requests for forged in outside.forge(request))
