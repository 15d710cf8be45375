"""Outbox: senders that die anywhere and providers that say little: visible once, or unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import pytest
import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from fixtures.machine_bench import (
    PARTS,
    Event,
    Fault,
    Happenings,
    HubDiedError,
    Machine,
    Row,
    Tally,
    events,
    never_met,
    pair,
    pairs,
    play,
    rarely_met,
)
from fixtures.machine_world import NUMBER, News, open_item, trigger_of
from fixtures.still_hub import ANN, POLICY, PULL, SOURCE
from upright.api import Address, Context, EffectClass, Receipt
from upright.core.backoff import Backoff
from upright.core.errors import IllegalMoveError
from upright.core.outbox import (
    TERMINAL,
    TRANSITIONS,
    Abandoned,
    Claimed,
    Delivered,
    Discarded,
    NotDelivered,
    OutboxState,
    Refused,
    Released,
    TooLate,
    Uncertain,
)
from upright.engine.embedded import recover
from upright.store import intake, outbox
from upright.store.errors import StoreUnavailableError
from upright.store.outbox import Setback, Stored
from upright.store.unit import Unit

LIFE_S: Final = 600
TRIES: Final = Backoff(base_s=1.0, cap_s=60.0, max_tries=4)
NOT_NOW: Final = Setback(event=NotDelivered(), reason="not now", wait_s=1.0, backoff=TRIES)
TOLD: Final = """
SELECT json_extract(body_json, '$.context.facts') FROM trigger WHERE kind LIKE 'effect.%'
"""


@dataclass
class Provider:
    """What is visible, by idempotency key; it can be asked, and then it says the truth."""

    visible: Counter[str] = field(default_factory=Counter)
    poison: set[str] = field(default_factory=set)


ANSWERS: Final = st.sampled_from(("yes", "yes", "yes", "no", "lost", "gone"))
RARELY: Final = st.sampled_from((False, False, False, True))
HAPPENS: Final[Happenings] = {
    "puts": (4, {"held": RARELY, "poisoned": RARELY, "again": RARELY}),
    "claims": (4, {"limit": st.integers(1, 3)}),
    "sends": (6, {"n": NUMBER, "answer": ANSWERS}),
    "sends_and_dies": (5, {"n": NUMBER, "answer": ANSWERS, "fault": st.sampled_from(list(Fault))}),
    "waits_for_its_channel": (1, {"n": NUMBER}),
    "decides": (2, {"n": NUMBER, "yes": st.booleans()}),
    "meets": (2, {"n": NUMBER, "event": st.sampled_from((TooLate(), Discarded(), Released()))}),
    "time_passes": (2, {"seconds": st.sampled_from((1, 30, LIFE_S))}),
    "dies": (1, {}),
}


class Outbox(Machine):
    """A sender and its provider."""

    def __init__(self, connection: sa.Connection, met: Counter[str]) -> None:
        super().__init__(connection, met)
        self.provider = Provider()
        self.claimed: list[Stored] = []  # in the sender's memory
        self.ended: dict[str, OutboxState] = {}
        self.keys = 0

    @initialize()
    def begins(self) -> None:
        """One item, whose worker says things."""
        news = News(ANN, "ci.failed", "pr:1", "", Address.MENTION)
        trigger = trigger_of(news, ("n1",), Context(thread="pr:1"))
        self.bench.do(lambda u: intake.accept(u, SOURCE, [trigger], POLICY))
        self.bench.do(open_item)
        ((self.session, self.work),) = self.bench.rows("SELECT session_id, id FROM work")

    @rule(event=events(HAPPENS))
    def happens(self, event: Event) -> None:
        """One thing happens; the hub may die of it, or be told that nothing was stored."""
        try:
            event.on(self)
        except HubDiedError:
            self.dies()
        except StoreUnavailableError:
            self.dies()  # the sender's supervisor starts it again: nothing claimed is remembered

    # -------------------------------------------------------------- the hub
    def puts(self, *, held: bool, poisoned: bool, again: bool) -> None:
        """A tool commits an effect, or the same one again."""
        self.keys += not (again and self.keys)
        key = f"k{self.keys}"
        if poisoned and not again:
            self.provider.poison.add(key)
        draft = outbox.Draft(
            session=self.session,
            work=self.work,
            trigger=None,
            effect_class=EffectClass.REPLY,
            destination=replace(PULL, address=(("number", str(self.keys % 3)),)),
            text=f"said under {key}",
            idempotency_key=key,
            state=OutboxState.HELD if held else OutboxState.PENDING,
            life_ms=None if held else LIFE_S * 1000,
        )
        before = self.bench.rows("SELECT id FROM outbox WHERE idempotency_key = ?", key)
        stored = self.bench.do(lambda u: outbox.put(u, draft))
        self.met["an effect is committed twice"] += before == [(stored.id,)]

    def claims(self, limit: int) -> None:
        """The sender takes what is due."""
        late = self._late()
        taken = self.bench.do(lambda u: outbox.claim_due(u, limit)).taken
        for stored in taken:
            self.met[pair("outbox", OutboxState.PENDING, Claimed)] += 1
            assert (stored.id,) not in late
        self.met[pair("outbox", OutboxState.PENDING, TooLate)] += len(late) - len(self._late())
        self.claimed += taken

    def _late(self) -> list[Row]:
        sql = "SELECT id FROM outbox WHERE state = 'pending' AND expires_at_ms <= ?"
        return self.bench.rows(sql, self.bench.now_ms)

    def sends(self, n: int, answer: str) -> None:
        """One try; a provider that has it already says so, whatever else would have come."""
        if not self.claimed:
            self.claims(2)
        if not self.claimed:
            return
        stored = self.claimed.pop(n % len(self.claimed))
        key = stored.idempotency_key
        if stored.item.tries > 1 and self.provider.visible[key]:
            self._delivered(stored, found=True)
            self.met["looking finds it"] += 1
        elif answer == "no" or (key in self.provider.poison and answer != "gone"):
            self._set_back(stored, NOT_NOW)
        elif answer == "gone":
            self._set_back(stored, Setback(event=Refused(), reason="it is gone"))
        else:
            self.provider.visible[key] += n % 3 > 0 or answer == "yes"
            self._answered(stored, answer)

    def sends_and_dies(self, n: int, answer: str, fault: Fault) -> None:
        """One try, of which the row learns nothing, or its sender doesn't learn that it did."""
        if not self.claimed:
            self.claims(2)
        self.bench.fuse = (0, fault)
        self.sends(n, answer)

    def _answered(self, stored: Stored, answer: str) -> None:
        """What became visible is settled, unless the sender dies first."""
        try:
            if answer == "yes":
                self._delivered(stored, found=False)
            else:
                self._set_back(stored, Setback(event=Uncertain(), reason="silence"))
        except (HubDiedError, StoreUnavailableError):
            self.met["the sender dies before it knows the answer"] += 1
            raise

    def _delivered(self, stored: Stored, *, found: bool) -> None:
        receipt = Receipt(provider_id=f"r-{stored.idempotency_key}", found=found)
        self.met[pair("outbox", OutboxState.SENDING, Delivered)] += 1
        self.bench.do(lambda u: outbox.delivered(u, stored, receipt, 0.1))

    def _set_back(self, stored: Stored, setback: Setback) -> None:
        self.met[pair("outbox", OutboxState.SENDING, type(setback.event))] += 1
        state = self.bench.do(lambda u: outbox.set_back(u, stored, setback))
        self.met["a poisoned effect is given up"] += state is OutboxState.DEAD

    def waits_for_its_channel(self, n: int) -> None:
        """The connector is not ready: nothing was tried, and its tries don't count."""
        if self.claimed:
            stored = self.claimed.pop(n % len(self.claimed))
            self._set_back(stored, Setback(event=NotDelivered(), reason="not ready", wait_s=30.0))

    def dies(self) -> None:
        """The hub is killed and starts again: what was being sent is taken back."""
        self.bench.fuse = None
        sending = self.bench.rows("SELECT idempotency_key FROM outbox WHERE state = 'sending'")
        self.met[pair("outbox", OutboxState.SENDING, Abandoned)] += len(sending)
        for (key,) in sending:
            self.met["a sender dies with what is visible already"] += self.provider.visible[key]
        self.claimed.clear()
        self.bench.do(recover)

    def time_passes(self, seconds: int) -> None:
        """Some things are due again, and some too late."""
        self.bench.go_on(seconds)

    # -------------------------------------------------------------- people, and what is illegal
    def decides(self, n: int, *, yes: bool) -> None:
        """A person lets a held effect go, or not; what is not held is refused."""
        event = Released if yes else Discarded
        self._try(n, event, lambda u, name: outbox.release(u, name) if yes else _drop(u, name))

    def meets(self, n: int, event: TooLate | Discarded | Released) -> None:
        """Anything else happens to an effect; what the table does not have is refused."""

        def unit(u: Unit, name: str) -> None:
            outbox.set_back(u, outbox.read(u.c, name), Setback(event=event, reason="so"))

        self._try(n, type(event), unit)

    def _try(self, n: int, event: type, unit: Callable[[Unit, str], object]) -> None:
        held_first = "ORDER BY state <> 'held', state <> 'pending', id DESC"
        rows = self.bench.rows(f"SELECT id, state FROM outbox {held_first}")
        if not rows:
            return
        name, state = rows[n // 4 % len(rows) if n % 4 else 0]
        legal = (OutboxState(state), event) in TRANSITIONS
        try:
            self.bench.do(lambda u: unit(u, name))
        except IllegalMoveError:
            assert not legal
            self.met["an illegal move is refused"] += 1
        else:
            assert legal
            self.met[pair("outbox", OutboxState(state), event)] += 1

    # -------------------------------------------------------------- what holds
    @invariant()
    def is_visible_once_or_unknown(self) -> None:
        """Invariants 4 and 5: at most once; and what the row says is true."""
        assert all(count <= 1 for count in self.provider.visible.values())
        told = Counter(row[0] for row in self.bench.rows(TOLD))
        for name, state, key, receipt in self.bench.rows(
            "SELECT id, state, idempotency_key, receipt_id FROM outbox"
        ):
            now, seen = OutboxState(state), self.provider.visible[key]
            assert now is self.ended.get(name, now), "a terminal state changed"
            if now in TERMINAL:
                self.ended[name] = now
            assert (receipt != "") is (now is OutboxState.SENT)
            if now is OutboxState.SENT:
                assert seen == 1
            if now in {OutboxState.DEAD, OutboxState.EXPIRED, OutboxState.HELD}:
                assert seen == 0, f"{now}, and yet it is visible"
            self.met[f"ends {now}"] += now in TERMINAL
            facts = f'[["outbox","{name}"],["state","{now}"]]'
            is_told = now in TERMINAL and now is not OutboxState.SENT
            assert told[facts] == is_told, "the session is told once, and the truth"

    def at_the_end(self) -> None:
        """With a sound provider all that can be sent is sent, past whatever is poisoned."""
        self.dies()
        pending = "SELECT 1 FROM outbox WHERE state = 'pending' LIMIT 1"
        for _ in range(20):  # what is tried again holds up its lane for its bounded tries
            if not self.bench.rows(pending):
                break
            self.claims(limit=100)
            while self.claimed:
                self.sends(0, "yes")
                self.claims(limit=100)
            self.bench.go_on(31)
        self.is_visible_once_or_unknown()
        left = self.bench.rows("SELECT idempotency_key FROM outbox WHERE state = 'pending'")
        waiting = {key for (key,) in left if key not in self.provider.poison}
        assert not waiting, "something sound is stuck"


def _drop(u: Unit, name: str) -> None:
    outbox.discard(u, name, "a person said no")


RACES: Final = (
    "an effect is committed twice",
    "looking finds it",
    "the sender dies before it knows the answer",
    "a sender dies with what is visible already",
    "a poisoned effect is given up",
    "an illegal move is refused",
)


@pytest.mark.parametrize("part", PARTS)
def test_an_effect_is_visible_once_or_is_listed_as_unknown(
    connection: sa.Connection, part: int, tally: Tally
) -> None:
    met = play(Outbox, connection, part=part, examples=10, steps=50)
    whole = tally.add(Outbox.__name__, part, met)
    assert never_met(whole, pairs("outbox", TRANSITIONS)) == []
    assert rarely_met(whole, RACES) == {}
