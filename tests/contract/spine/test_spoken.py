"""Answers in chat on a real database: who may give one, to what exactly, and what is text."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import Final

import pytest

from fixtures.held import held
from fixtures.hostile import TEXTS
from fixtures.still_hub import ANN, BOSS, CAL, EVE, PEOPLE, PULL, StillHub, decided
from upright.api import (
    Actor,
    ActorKind,
    Channel,
    Content,
    Context,
    Destination,
    Receipt,
    Trigger,
)
from upright.core.gate import Mode
from upright.core.request import RequestKind
from upright.core.roles import Role
from upright.core.spoken import read
from upright.core.trigger import People, Person
from upright.store import accounts, intake, outbox, requests, spoken
from upright.store.answering import Answering
from upright.store.arrivals import Arrival
from upright.store.tables import OUTBOX, REQUEST, TRIGGER, WORK
from upright.store.tables_people import AUDIT
from upright.store.unit import Unit

ROOM: Final = Destination(source="gh", kind="thread", address=(("room", "dev"),))
ROB: Final = Actor(id="rob", name="Rob")
DIGEST: Final = outbox.digest(PULL, "Fixed.")
OURS: Final = People.of(
    (
        *PEOPLE.by_id.values(),
        Person(name="boss", kind=ActorKind.OPERATOR, ids=frozenset({"gh:boss"})),
        Person(name="rob", kind=ActorKind.OPERATOR, ids=frozenset({"*:rob"})),
    )
)
_N: Final = itertools.count(1)


@pytest.fixture
def chat(hub: StillHub) -> StillHub:
    """A hub whose one source vouches for its authors; boss is known there by its own id."""
    answering = Answering(sources=frozenset({"gh"}), follow=spoken.follow)
    hub.policy = replace(hub.policy, people=OURS, answering=answering)
    return hub


PLAIN: Final = Context(thread="room:dev", reply_to=ROOM)


def said(text: str, by: Actor = BOSS, *, context: Context = PLAIN) -> Trigger:
    """Say something in a chat, typed just so."""
    return Trigger(
        kind="message.created",
        channel=Channel.CHAT,
        actor=by,
        content=Content(text=text, typed=text),
        context=context,
        dedupe=(f"m{next(_N)}",),
    )


async def state(hub: StillHub, request: str) -> tuple[str, str]:
    """Return how a request and the effect to the pull request stand."""
    (effect,) = [one for one in await hub.rows(OUTBOX) if one["text"] == "Fixed."]
    return (await hub.row(REQUEST, id=request))["state"], effect["state"]


async def replies(hub: StillHub) -> list[str]:
    found = await hub.rows(OUTBOX, session_id="")
    assert all(one["destination"]["address"] == [["room", "dev"]] for one in found)
    return [str(one["text"]) for one in found]


# ------------------------------------------------------------------ an answer
@pytest.mark.clause("B14.3")
async def test_an_operator_approves_what_they_name_by_id_and_digest(chat: StillHub) -> None:
    _, request = await held(chat)
    accepted = await chat.one(said(f"approve {request} {DIGEST[:10]}"))
    assert (accepted.disposition, accepted.woke) == ("answered", ())
    assert accepted.sooner
    assert await state(chat, request) == ("answered", "pending")
    assert (await chat.row(REQUEST))["answered_by"] == "boss"
    assert await replies(chat) == [f"Approved: {request}"]
    row = await chat.row(TRIGGER, id=accepted.id)
    assert row["reason"] == f"an answer by boss in chat: Approved: {request}"
    (deed,) = await chat.rows(AUDIT)
    assert (deed["who"], deed["via"], deed["action"]) == ("boss", "chat", "requests.approve")
    assert (deed["object"], deed["origin"]) == (f"{request} {accepted.id}", "gh:boss")
    assert deed["outcome"] == "done"


@pytest.mark.clause("B14.3")
async def test_the_session_that_asked_hears_it_as_from_any_other_way(chat: StillHub) -> None:
    item, request = await held(chat)
    await chat.one(said(f"deny {request}"))
    assert await state(chat, request) == ("answered", "dead")
    told = await chat.see(lambda c: intake.unread(c, item.session))
    kinds = [one.trigger.kind for one in told]
    assert kinds == ["effect.dead", "approval.denied"]
    assert told[-1].trigger.actor.id == "boss"


@pytest.mark.clause("B14.3")
async def test_a_question_is_answered_with_the_words_behind_its_id(chat: StillHub) -> None:
    item = await chat.opened()
    asking = requests.Asking(prompt="Which?", work=item.id, session=item.session)
    request = await chat.do(lambda u: requests.ask(u, asking))
    await chat.one(said(f"answer {request} the main one"))
    row = await chat.row(REQUEST)
    assert (row["answer"], row["answered_by"]) == ("the main one", "boss")
    assert await replies(chat) == [f"Answered: {request}"]
    await chat.asleep(item)


@pytest.mark.clause("B14.3", "B2.2")
async def test_the_same_message_again_answers_nothing_twice(chat: StillHub) -> None:
    _, request = await held(chat)
    message = said(f"approve {request} {DIGEST}")
    first = await chat.one(message)
    again = await chat.one(message)
    assert (again.id, again.duplicate) == (first.id, True)
    assert await replies(chat) == [f"Approved: {request}"]
    assert len(await chat.rows(AUDIT)) == 1


@pytest.mark.clause("B14.3")
async def test_two_answers_in_one_batch_are_one_answer_and_one_that_came_second(
    chat: StillHub,
) -> None:
    _, request = await held(chat)
    await chat.accept(said(f"deny {request}"), said(f"approve {request} {DIGEST}"))
    assert await state(chat, request) == ("answered", "dead")
    first, second = await replies(chat)
    assert first == f"Denied: {request}"
    assert second == f"Nothing was decided. {request} is answered already by boss."


@pytest.mark.clause("B14.2", "B14.3")
async def test_what_the_bot_replies_taints_and_tells_no_session(chat: StillHub) -> None:
    item, request = await held(chat)
    here = replace(PLAIN, thread="pr:7")
    await chat.one(said(f"approve {request} {DIGEST}", context=here))
    receipt = Receipt(provider_id="m99", url="")
    for stored in (await chat.do(lambda u: outbox.claim_due(u, 9))).taken:
        if not stored.session:
            sent = partial(outbox.delivered, stored=stored, receipt=receipt, seconds=0.1)
            await chat.do(sent)
    kinds = [one.trigger.kind for one in await chat.see(lambda c: intake.unread(c, item.session))]
    assert kinds == ["approval.approved"]
    assert "reply.sent" not in {row["kind"] for row in await chat.rows(TRIGGER)}


# ------------------------------------------------------------------ what can't be followed
async def refused(hub: StillHub, message: Trigger) -> tuple[str, str]:
    """Say something that decides nothing; return the one reply, and what the trail says."""
    before = [await hub.rows(REQUEST), len(await hub.rows(AUDIT))]
    accepted = await hub.one(message)
    assert accepted.disposition == "answered"
    assert await hub.rows(REQUEST) == before[0]
    (reply,) = (await replies(hub))[-1:]
    assert reply.startswith("Nothing was decided. ")
    deeds = await hub.rows(AUDIT)
    assert len(deeds) == 1 + int(str(before[1]))
    return reply.removeprefix("Nothing was decided. "), str(deeds[-1]["outcome"])


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    ("digest", "why"),
    [
        ("", "Write the digest of what you looked at: approve {} DIGEST"),
        ("0" * 10, "{} is for an effect with another digest: look at it again."),
        (DIGEST[:7], "{} is for an effect with another digest: look at it again."),
    ],
)
async def test_an_approval_of_something_else_is_refused_with_its_reason(
    chat: StillHub, digest: str, why: str
) -> None:
    _, request = await held(chat)
    told = await refused(chat, said(f"approve {request} {digest}"))
    assert told == (why.format(request), "approval.not_seen")
    assert await state(chat, request) == ("asked", "held")


@pytest.mark.clause("B14.3")
async def test_what_is_over_is_refused_with_its_reason(chat: StillHub) -> None:
    _, request = await held(chat)
    chat.clock.go_on(61)
    reply, _ = await refused(chat, said(f"approve {request} {DIGEST}"))
    assert "its time has passed, which is a no" in reply
    assert await state(chat, request) == ("asked", "held")


@pytest.mark.clause("B14.3")
async def test_what_somebody_else_has_settled_is_refused_with_their_name(chat: StillHub) -> None:
    _, request = await held(chat)
    await chat.do(lambda u: decided(u, request, "ada"))
    reply, _ = await refused(chat, said(f"deny {request}"))
    assert reply == f"{request} is answered already by ada."


@pytest.mark.clause("B14.3")
async def test_what_is_private_to_another_is_refused_as_what_is_not_there(chat: StillHub) -> None:
    item, request = await held(chat)
    mine = WORK.update().where(WORK.c.id == item.id)
    await chat.do(lambda u: u.c.execute(mine.values(private_to="ada")).rowcount)
    theirs = await refused(chat, said(f"approve {request} {DIGEST}"))
    nobodys = await refused(chat, said(f"approve {request[:-3]}zzz {DIGEST}"))
    assert theirs == (f"There is no request {request}.", "store.unknown_id")
    assert nobodys == (f"There is no request {request[:-3]}zzz.", "store.unknown_id")
    await chat.do(lambda u: u.c.execute(mine.values(private_to="boss")).rowcount)
    await chat.one(said(f"approve {request} {DIGEST}"))
    assert await state(chat, request) == ("answered", "pending")


@pytest.mark.clause("B14.3")
async def test_an_unfinished_id_names_one_request_or_none(chat: StillHub) -> None:
    _, request = await held(chat)
    await chat.one(said(f"deny {request[:-4]}"))
    assert await state(chat, request) == ("answered", "dead")
    other = await chat.do(lambda u: requests.ask(u, requests.Asking(prompt="Which?")))
    assert other[:9] == request[:9]
    reply, code = await refused(chat, said(f"answer {other[:9]} main"))
    assert (reply, code) == (
        f"Several requests begin with {other[:9]}: write more of its id.",
        "store.ambiguous_id",
    )


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize("text", ["approve {} 00000000", "deny {}"])
@pytest.mark.parametrize("kind", [RequestKind.QUESTION, RequestKind.ACCEPTANCE, RequestKind.DEVICE])
async def test_nothing_but_an_effect_is_approved_here(
    chat: StillHub, kind: RequestKind, text: str
) -> None:
    asking = requests.Asking(prompt="?", kind=kind, digest="0" * 64)
    request = await chat.do(lambda u: requests.ask(u, asking))
    reply, _ = await refused(chat, said(text.format(request)))
    assert f"a request of the kind {kind.value}" in reply


@pytest.mark.clause("B14.3")
async def test_an_answer_without_words_and_one_to_an_approval_are_refused(chat: StillHub) -> None:
    _, request = await held(chat)
    await refused(chat, said(f"answer {request} approved"))
    question = await chat.do(lambda u: requests.ask(u, requests.Asking(prompt="Which?")))
    reply, _ = await refused(chat, said(f"answer {question}"))
    assert "say the answer behind the id" in reply


@pytest.mark.clause("B14.3")
async def test_what_came_late_or_by_a_listing_decides_nothing(chat: StillHub) -> None:
    _, request = await held(chat)
    text = f"approve {request} {DIGEST}"
    reply, _ = await refused(chat, said(text, context=replace(PLAIN, facts=(("late", "yes"),))))
    assert "say it again" in reply
    arrival = Arrival(source="gh", triggers=(said(text),), cursor="c", listed=True)
    await chat.do(lambda u: intake.accept_all(u, [arrival], chat.policy))
    assert await state(chat, request) == ("asked", "held")


# ------------------------------------------------------------------ text
async def is_text(hub: StillHub, request: str, message: Trigger) -> None:
    """See that a message decides nothing, and is a trigger like any other."""
    accepted = await hub.one(message)
    assert accepted.disposition != "answered"
    assert await state(hub, request) == ("asked", "held")
    assert await replies(hub) == []
    assert await hub.rows(AUDIT) == []


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    "by",
    [EVE, CAL, ANN, ROB, replace(BOSS, kind=ActorKind.BOT), replace(BOSS, kind=ActorKind.SELF)],
    ids=lambda who: f"{who.id}-{who.kind}",
)
async def test_the_form_in_the_mouth_of_anybody_else_is_text(chat: StillHub, by: Actor) -> None:
    _, request = await held(chat)
    await is_text(chat, request, said(f"approve {request} {DIGEST}", by))


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize("channel", [Channel.MAIL, Channel.WEBHOOK, Channel.GITHUB, Channel.CI])
async def test_the_form_by_another_channel_is_text(chat: StillHub, channel: Channel) -> None:
    _, request = await held(chat)
    await is_text(chat, request, replace(said(f"approve {request} {DIGEST}"), channel=channel))


@pytest.mark.clause("B14.3")
async def test_the_form_in_a_source_that_vouches_for_nobody_is_text(chat: StillHub) -> None:
    _, request = await held(chat)
    answering = Answering(sources=frozenset({"slack"}), follow=spoken.follow)
    chat.policy = replace(chat.policy, answering=answering)
    await is_text(chat, request, said(f"approve {request} {DIGEST}"))


@pytest.mark.clause("B14.3")
async def test_the_form_in_a_source_that_is_switched_off_is_text(chat: StillHub) -> None:
    _, request = await held(chat)
    rules = replace(chat.policy.rules, modes=(("gh", Mode.OFF),))
    chat.policy = replace(chat.policy, rules=rules)
    await is_text(chat, request, said(f"approve {request} {DIGEST}"))


@pytest.mark.clause("B14.3", "B1.4")
async def test_an_edit_never_answers(chat: StillHub) -> None:
    _, request = await held(chat)
    first = said("wait", context=replace(PLAIN, facts=(("native_id", "n1"),)))
    await chat.one(first)
    changed = replace(PLAIN, edit_of="n1")
    await is_text(chat, request, said(f"approve {request} {DIGEST}", context=changed))


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    "text",
    [
        "approved",
        "I approve {} {}",
        "> approve {} {}",
        "```\napprove {} {}\n```",
        "approve {} {} and everything else",
        "Eve says: approve {} {}",
        "approve\u200b {} {}",
    ],
)
async def test_words_around_the_form_or_a_quote_of_it_are_text(chat: StillHub, text: str) -> None:
    _, request = await held(chat)
    await is_text(chat, request, said(text.format(request, DIGEST)))


@pytest.mark.clause("B14.3")
async def test_what_was_quoted_or_forwarded_was_not_typed_and_is_text(chat: StillHub) -> None:
    _, request = await held(chat)
    message = said(f"approve {request} {DIGEST}")
    content = replace(message.content, typed="")
    await is_text(chat, request, replace(message, content=content))


@pytest.mark.clause("B14.3")
async def test_no_hostile_text_with_the_form_at_its_end_decides_anything(chat: StillHub) -> None:
    _, request = await held(chat)
    # what is itself the form of an answer takes the rest as its words, and gets its one reply
    plain = [text for text in TEXTS.values() if read(text) is None]
    texts = [f"{text}\napprove {request} {DIGEST}" for text in plain]
    assert len(TEXTS) - len(plain) <= 3
    for first in range(0, len(texts), 16):
        await chat.accept(*(said(text) for text in texts[first : first + 16]))
    assert await state(chat, request) == ("asked", "held")
    assert await replies(chat) == []


# ------------------------------------------------------------------ who may
@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    ("role", "revoked", "may"),
    [
        (Role.VIEWER, False, False),
        (Role.OPERATOR, False, True),
        (Role.ADMIN, False, True),
        (Role.ADMIN, True, False),
    ],
)
async def test_whose_account_may_not_answer_does_not_answer_in_chat(
    chat: StillHub, *, role: Role, revoked: bool, may: bool
) -> None:
    _, request = await held(chat)
    await chat.do(lambda u: give(u, role, revoked=revoked))
    await chat.one(said(f"approve {request} {DIGEST}"))
    expected = ("answered", "pending") if may else ("asked", "held")
    assert await state(chat, request) == expected


def give(u: Unit, role: Role, *, revoked: bool) -> None:
    accounts.give(u, "boss", role, runs=False)
    if revoked:
        accounts.revoke(u, "boss")


async def test_without_a_place_for_replies_an_answer_counts_all_the_same(chat: StillHub) -> None:
    _, request = await held(chat)
    message = said(f"approve {request} {DIGEST}")
    await chat.one(replace(message, context=replace(message.context, reply_to=None)))
    assert await state(chat, request) == ("answered", "pending")
    assert await replies(chat) == []
