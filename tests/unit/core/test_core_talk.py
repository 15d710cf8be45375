"""Talk around a trigger: bounded, labelled, and as little trusted as its least trusted message."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from upright.api import Actor, ActorKind, Message
from upright.core.ids import TriggerId
from upright.core.mandate import Trust
from upright.core.talk import CAP_BYTES, Around, Near, near, told
from upright.core.trigger import People, Person

AT = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)
ANN = Person(name="ann", kind=ActorKind.MEMBER, ids=frozenset({"gh:ann"}))
PEOPLE = People.of((ANN,), trusted_bots=frozenset({"gh:ci"}))


def message(author: str, kind: ActorKind = ActorKind.STRANGER, text: str = "hi") -> Message:
    return Message(id="m1", author=Actor(id=author, name=author.title(), kind=kind), text=text)


def test_each_message_has_the_trust_that_configuration_gives_its_author() -> None:
    said = [
        message("ann"),
        message("eve"),
        message("eve", ActorKind.OPERATOR),
        message("ci", ActorKind.BOT),
        message("us", ActorKind.SELF),
    ]
    trusts = [one.trust for one in near("gh", said, PEOPLE)]
    assert trusts == [Trust.MEMBER, Trust.STRANGER, Trust.STRANGER, Trust.MEMBER, Trust.MEMBER]


def test_the_whole_is_trusted_like_its_least_trusted_message_and_nothing_like_ourselves() -> None:
    both = near("gh", [message("ann"), message("eve")], PEOPLE)
    assert Around(before=both[:1], after=both[1:]).trust is Trust.STRANGER
    assert Around(before=both[:1]).trust is Trust.MEMBER
    assert Around().trust is Trust.OPERATOR


def test_it_is_told_as_material_with_who_when_and_by_whom() -> None:
    stored = Near(
        message=Message(id="1", author=Actor(id="eve"), text="Look", at=AT),
        trust=Trust.STRANGER,
        trigger=TriggerId("tr_1"),
    )
    (ann,) = near("gh", [message("ann")], PEOPLE)
    shown = told(
        Around(before=(stored,), after=(ann,), whole=True, told_by="service"), where="tr_2"
    )
    assert shown == {
        "trigger": "tr_2",
        "role": "material",
        "trust": "stranger",
        "told_by": "service",
        "whole": True,
        "before": [
            {
                "by": "eve",
                "trust": "stranger",
                "id": "tr_1",
                "at": "2026-06-01T10:00:00+00:00",
                "text": "Look",
            }
        ],
        "after": [{"by": "Ann", "trust": "member", "text": "hi"}],
    }


def test_forty_long_messages_stay_within_the_cap_and_say_where_the_rest_is() -> None:
    said = near("gh", [message("eve", text="x" * 9_000)] * 20, PEOPLE)
    shown = told(Around(before=said, after=said), where="tr_2")
    texts = [one["text"] for one in (*shown["before"], *shown["after"])]
    assert sum(len(text) for text in texts) <= CAP_BYTES
    assert all("read('tr_2')" in text for text in texts)
    assert len(json.dumps(shown)) < 2 * CAP_BYTES
