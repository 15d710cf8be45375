"""Compaction over a real store: a new generation, once, with all that must not be lost (B5.5)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import pytest

from fixtures.agents import (
    IN_TIME,
    TEST,
    WAIT_CI,
    Agents,
    Say,
    ScriptedChat,
    call,
    users,
    worker,
)
from fixtures.still_hub import ANN, BOSS, EVE, StillHub, trigger
from upright.agent.prompts.notices import SUMMARISE
from upright.agent.turn import AgentLimits
from upright.core.compaction import ContextBounds
from upright.core.ids import SessionId
from upright.core.mandate import Trust
from upright.core.strategy import OPERATOR_INTERRUPT
from upright.core.transcript import Message, Role, encode
from upright.engine.ports import ChatRequest, ModelRequestError, ModelUnavailableError
from upright.store import people, views, waits
from upright.store.holds import MODEL
from upright.store.tables import ENTRY, EVENT, JOB, LEDGER

SHORT: Final = replace(IN_TIME, context=ContextBounds(router=5, worker=5))
NOTE: Final = call("plan", {"steps": [{"text": "look", "done": True}]})
WAIT: Final = call(
    "wait", {"for": "timer", "why": "CI of <c0ffee>", "look_first": "the log", "seconds": 900}
)


def card(messages: Sequence[Message]) -> Mapping[str, Any]:
    """Return the card that a generation began with."""
    found: Mapping[str, Any] = json.loads(messages[1].text.split("\n")[1])
    return found


async def grown(hub: StillHub, *, limits: AgentLimits = SHORT) -> tuple[Agents, SessionId]:
    """Let a worker test, plan and wait: its transcript is long enough to be compacted."""
    agents, item = await worker(hub, TEST, NOTE, WAIT, NOTE, WAIT, limits=limits)
    await agents.go()
    return agents, item.session


async def wake(hub: StillHub, agents: Agents) -> None:
    await hub.one(trigger("comment.created", by=ANN, text="And?"))
    await agents.go()


def is_prefix(one: Sequence[Message], other: Sequence[Message]) -> bool:
    first, second = ([encode(m) for m in messages] for messages in (one, other))
    return second[: len(first)] == first


@pytest.mark.clause("B5.5", "B8.1")
async def test_a_long_transcript_begins_anew_with_a_card_and_what_came(hub: StillHub) -> None:
    agents, session = await grown(hub)
    before = (await agents.loaded(session)).messages
    assert agents.chat.summaries == []
    await wake(hub, agents)
    (asked,) = agents.chat.summaries
    assert is_prefix(before, asked.messages)
    assert [m.text for m in asked.messages[len(before) :]] == [SUMMARISE]
    assert asked.tools == agents.chat.requests[0].tools
    loaded = await agents.loaded(session)
    told = card(loaded.messages)
    assert (loaded.generation, told["generation"]) == (1, 1)
    assert loaded.messages[0].role is Role.SYSTEM
    assert told["summary"] == "All that was is told."
    assert (told["goal"], told["criteria"]) == ("make it green", ["tests pass"])
    assert "And?" in users(loaded.messages)[1]


@pytest.mark.clause("B5.5")
async def test_open_waits_stand_on_the_card_verbatim(hub: StillHub) -> None:
    agents, session = await grown(hub)
    (wait,) = await hub.see(lambda c: waits.open_of(c, str(_work(agents))))
    await wake(hub, agents)
    (kept,) = card((await agents.loaded(session)).messages)["open_waits"]
    assert kept == {
        "id": wait.id,
        "for": "timer",
        "ref": wait.ref,
        "why": "CI of <c0ffee>",
        "look_first": "the log",
        "until_ms": wait.deadline_ms,
        "then": wait.on_deadline.value,
    }


def _work(agents: Agents) -> str:
    found = next(m.text for m in agents.chat.requests[0].messages if m.text.startswith("<card>"))
    work: str = json.loads(found.split("\n")[1])["item"]
    return work


@pytest.mark.clause("B5.5", "B7.3")
async def test_what_left_the_context_stays_readable_with_its_summary(hub: StillHub) -> None:
    agents, session = await grown(hub)
    before = await hub.see(lambda c: views.entries(c, session, limit=100))
    await wake(hub, agents)
    after = await hub.see(lambda c: views.entries(c, session, limit=100))
    assert after[: len(before)] == before
    closed = [one for one in after[len(before) :] if one["generation"] == 0]
    assert [one["message"]["text"] for one in closed] == [SUMMARISE, "All that was is told."]


@pytest.mark.clause("B16.1")
async def test_a_summary_is_a_row_of_the_ledger_and_an_event(hub: StillHub) -> None:
    agents, session = await grown(hub)
    await wake(hub, agents)
    (row,) = await hub.rows(LEDGER, kind="compaction")
    assert (row["session_id"], row["tokens_input"], row["model"]) == (session, 10, "scripted")
    (event,) = await hub.rows(EVENT, stop="session.compacted")
    assert event["data"]["generation"] == 1


COMMITS: Final = 20


@pytest.mark.clause("B5.5", "B8.6")
@pytest.mark.parametrize("dies_after", range(6))
async def test_a_hub_that_dies_at_any_commit_compacts_once(hub: StillHub, dies_after: int) -> None:
    agents, session = await grown(hub)
    agents.dies_at = agents.commits + dies_after
    await wake(hub, agents)
    loaded = await agents.loaded(session)
    assert (loaded.generation, len(agents.chat.summaries)) == (1, 1)
    assert len(await hub.rows(LEDGER, kind="compaction")) == 1
    assert sum("And?" in text for text in users(loaded.messages)) == 1
    assert agents.deaths == 1


@pytest.mark.clause("B5.5")
async def test_a_model_that_fails_leaves_the_card_alone(hub: StillHub) -> None:
    agents, session = await grown(hub)

    def fail(_request: object) -> Say:
        raise ModelRequestError("too long")

    agents.chat.summary = fail
    await wake(hub, agents)
    loaded = await agents.loaded(session)
    told = card(loaded.messages)
    assert loaded.generation == 1
    assert "summary" not in told
    assert told["open_waits"][0]["look_first"] == "the log"
    assert await hub.rows(LEDGER, kind="compaction") == []


@pytest.mark.clause("B5.5")
async def test_a_model_that_is_silent_for_too_long_leaves_the_card_alone(hub: StillHub) -> None:
    agents, session = await grown(hub, limits=replace(SHORT, summary_s=0.01))
    agents.chat.while_summing.append(asyncio.Event().wait)
    await wake(hub, agents)
    assert "summary" not in card((await agents.loaded(session)).messages)


@pytest.mark.clause("B8.1")
async def test_prompts_are_prefixes_within_each_generation(hub: StillHub) -> None:
    agents, _ = await grown(hub)
    for _ in range(3):
        await wake(hub, agents)
    by_conversation: dict[str, list[Sequence[Message]]] = {}
    for request in agents.chat.requests:
        by_conversation.setdefault(request.session, []).append(request.messages)
    assert len(by_conversation) > 1
    for prompts in by_conversation.values():
        assert all(is_prefix(one, two) for one, two in pairwise(prompts))


@pytest.mark.clause("B8.2")
async def test_calls_of_two_generations_have_ids_of_their_own(hub: StillHub) -> None:
    """The scripted model counts its calls anew, as many do: its second job was the first once."""
    agents, item = await worker(hub, TEST, NOTE, WAIT, limits=SHORT)
    await agents.go()
    await wake(hub, agents)
    jobs = await hub.rows(JOB, session_id=item.session)
    assert [job["call_id"] for job in jobs] == ["call_0_0", "g1_call_0_0"]


@pytest.mark.clause("B5.5", "B9.3")
async def test_what_is_urgent_is_not_kept_waiting_by_a_summary(hub: StillHub) -> None:
    agents, session = await grown(hub)

    async def interrupted() -> None:
        await hub.do(lambda u: people.say(u, session, "Stop!", OPERATOR_INTERRUPT))
        agents.signals.notify(session)
        await asyncio.Event().wait()

    agents.chat.while_summing.append(interrupted)
    await wake(hub, agents)
    loaded = await agents.loaded(session)
    assert any("Stop!" in text for text in users(loaded.messages))
    assert len(await hub.rows(LEDGER, kind="compaction")) >= 1


# ------------------------------------------------------------------ the router
async def strangers_word(hub: StillHub, agents: Agents) -> str:
    """Let the router hear a stranger, and answer in words, until it is to be compacted."""
    for _ in range(3):
        await hub.one(trigger("ci.failed", by=EVE, thread="pr:9", text="Grant me all."))
        await agents.go()
    return await hub.router()


@pytest.mark.clause("B5.5", "B14.2")
async def test_a_router_that_no_longer_holds_a_strangers_words_is_clean(hub: StillHub) -> None:
    chat = ScriptedChat(router=(Say("Seen."),) * 4)
    chat.summary = lambda request: Say("Eve wants all granted.")
    agents = Agents(hub, chat, limits=SHORT)
    router = await strangers_word(hub, agents)
    assert (await agents.loaded(router)).taint is Trust.STRANGER
    await hub.one(trigger("ci.failed", by=BOSS, thread="pr:10", text="Mend it."))
    await agents.go()
    loaded = await agents.loaded(router)
    assert (loaded.generation, loaded.taint) == (1, Trust.OPERATOR)
    assert all("Eve" not in m.text and "Grant" not in m.text for m in loaded.messages)
    assert f"{router}', part='summary:0'" in card(loaded.messages)["summary"]
    rows = await hub.rows(ENTRY, session_id=router, generation=0)
    assert rows[-1]["taint"] == Trust.STRANGER.label


@pytest.mark.clause("B5.5")
async def test_the_router_keeps_every_open_item_and_its_own_questions(hub: StillHub) -> None:
    chat = ScriptedChat(
        router=(
            call("spawn", _spawning),
            call("ask", lambda r: {"trigger": _newest(r), "question": "Which <branch>?"}),
            Say("Asked."),
        ),
        worker=(WAIT_CI,),
    )
    agents = Agents(hub, chat, limits=SHORT)
    await hub.device()
    await hub.one(trigger("ci.failed", by=EVE, thread="pr:9", text="Grant me all."))
    await agents.go()
    router = await hub.router()
    await hub.one(trigger("ci.failed", by=BOSS, thread="pr:10"))
    await agents.go()
    loaded = await agents.loaded(router)
    told = card(loaded.messages)
    assert [one["state"] for one in told["open_work"]] == ["waiting_external"]
    assert "Which <branch>?" in told["open_questions"][0]["question"]
    assert [one["did"] for one in told["decisions"]] == ["spawn", "ask"]
    assert loaded.taint is Trust.STRANGER  # the question was written after a stranger's words


def _newest(request: ChatRequest) -> str:
    text = users(request.messages)[-1]
    return text[text.index("tr_") :][:29]


def _spawning(request: ChatRequest) -> Mapping[str, Any]:
    return {"trigger": _newest(request), "goal": "mend it", "criteria": ["green"]}


@pytest.mark.clause("B5.5")
async def test_a_turn_that_was_cut_short_is_gone_on_with_before_anything_is_compacted(
    hub: StillHub,
) -> None:
    """What a dead turn took and did not answer is repeated in the new generation."""
    agents, session = await grown(hub)
    agents.chat.fails.append(ModelUnavailableError("busy"))
    await hub.one(trigger("comment.created", by=ANN, text="And?"))
    agents.limits = replace(SHORT, context=ContextBounds(router=0, worker=0))
    await agents.go()
    agents.limits = SHORT
    hub.clock.go_on(600)
    await hub.one(trigger("comment.created", by=ANN, text="And now?"))
    await agents.go()
    loaded = await agents.loaded(session)
    assert loaded.generation == 1
    told = users(loaded.messages)
    assert "And?" in told[1]
    assert "And now?" in "".join(told[2:])


@pytest.mark.clause("B5.5", "B11.7")
async def test_a_model_that_has_summed_up_is_waited_for_no_more(hub: StillHub) -> None:
    """It was away; its first words since are the summary, whose card must not say that it is."""
    agents, session = await grown(hub)
    agents.limits = IN_TIME
    agents.chat.fails.append(ModelUnavailableError("busy"))
    await wake(hub, agents)
    open_then = await hub.see(lambda c: waits.open_of(c, str(_work(agents))))
    assert MODEL in {wait.ref for wait in open_then}
    agents.limits = SHORT
    hub.clock.go_on(600)
    await wake(hub, agents)
    loaded = await agents.loaded(session)
    assert loaded.generation == 1
    assert MODEL not in {wait["ref"] for wait in card(loaded.messages)["open_waits"]}
