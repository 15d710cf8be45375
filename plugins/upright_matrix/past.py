"""Past: what is known of earlier events: who said it, in which thread, and which are ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from upright.api import TriggerRejectedError
from upright.kit.rooms import Known
from upright_matrix.client import V1, MatrixClient, path
from upright_matrix.events import MESSAGE, Event, read

_MAX_REPLIES: Final = 8  # replies to replies are followed so far, then that one is the root
_MOST_SEEN: Final = 8_192
_PAGE: Final = "50"
OURS: Final = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An earlier event. ``type`` is empty when the server does not show it to us."""

    sender: str = ""
    root: str
    type: str = MESSAGE
    text: str = ""


class Past:
    """Earlier events of all rooms of one source."""

    def __init__(self, client: MatrixClient, user_id: str) -> None:
        self._client = client
        self._me = user_id
        self._seen = Known[Seen](_MOST_SEEN)
        self._ours = Known[bool]()

    def note(self, event: Event, root: str) -> None:
        """Remember an event, and the thread in which it stands."""
        seen = Seen(sender=event.sender, root=root, type=event.type, text=event.text)
        self._seen.put(event.id, seen)

    def take_part(self, root: str) -> None:
        """Remember that a thread is ours: we spoke in it, or were spoken to."""
        self._ours.put(root, OURS)

    async def root_of(self, room: str, event: Event) -> str:
        """Return the root of the thread of an event: a message outside of any is its own."""
        if event.root:
            return event.root
        answered = event.target or event.replies_to
        return (await self.seen(room, answered)).root if answered else event.id

    async def seen(self, room: str, event_id: str, depth: int = 0) -> Seen:
        """Return what is known of an event, asked for when it is not."""
        return await self._seen.learn(event_id, lambda: self._ask(room, event_id, depth))

    async def _ask(self, room: str, event_id: str, depth: int) -> Seen:
        answer = await self._client.get(path("rooms", room, "event", event_id))
        try:
            event = read(answer.body) if answer.status == 200 else None
        except TriggerRejectedError:
            event = None
        if event is None:
            return Seen(root=event_id, type="")
        root = event.root or event_id
        if event.replies_to and not event.root and depth < _MAX_REPLIES:
            root = (await self.seen(room, event.replies_to, depth + 1)).root
        return Seen(sender=event.sender, root=root, type=event.type, text=event.text)

    async def is_ours(self, room: str, root: str) -> bool:
        """Tell whether we have a part in a thread, also from before a restart."""
        return await self._ours.learn(root, lambda: self._look(room, root))

    async def _look(self, room: str, root: str) -> bool:
        first = path("rooms", room, "event", root)
        later = path("rooms", room, "relations", root, "m.thread", base=V1)
        begun = await self._client.get(first)
        said = await self._client.get(later, {"limit": _PAGE, "dir": "b"})
        return any(self._concerns_us(one) for one in (begun.body, *said.objects("chunk")))

    def _concerns_us(self, raw: object) -> bool:
        try:
            event = read(raw)
        except TriggerRejectedError:
            return False
        return event.sender == self._me or self._me in event.mentions
