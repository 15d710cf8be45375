"""The router's memory: past routings with sources, sentences with taint (B5.3, B5.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from fixtures.agents import WAIT_CI, Agents, Line, Say, ScriptedChat, call, users
from fixtures.still_hub import BOSS, EVE, StillHub, trigger
from upright.api import Actor, Address, Trigger
from upright.core.mandate import Trust
from upright.core.memory import MAX_SAID
from upright.core.work import Stopped
from upright.engine.ports import ChatRequest
from upright.store import memories, sessions, views_why, work
from upright.store.errors import NotNowError
from upright.store.memories import Writer
from upright.store.tables import EVENT, MEMORY, SESSION
from upright.store.unit import Unit


def triggers(request: ChatRequest) -> list[str]:
    words = users(request.messages)[-1].split()
    return [word for word in words if word.startswith("tr_")]


def spawn(request: ChatRequest) -> Mapping[str, object]:
    return {"trigger": triggers(request)[-1], "goal": "mend it", "criteria": ["green"]}


SPAWN = call("spawn", spawn)


async def routed(hub: StillHub, *script: Line, given: Trigger | None = None) -> Agents:
    """Let the router deal with one trigger by this script."""
    agents = Agents(hub, ScriptedChat(router=script, worker=[WAIT_CI]))
    await hub.one(given or trigger())
    await agents.go()
    return agents


async def again(hub: StillHub, agents: Agents, given: Trigger, *script: Line) -> str:
    """Let the router deal with another one; return what it was told."""
    agents.chat.router = [*[Say()] * _steps(agents), *script]
    await hub.one(given)
    await agents.go()
    return users((await agents.loaded(await hub.router())).messages)[-1]


def _steps(agents: Agents) -> int:
    mine = [request for request in agents.chat.requests if request.role == "router"]
    return len(mine)


# ------------------------------------------------------------------ past routings
@pytest.mark.clause("B5.4")
async def test_what_was_done_with_a_kind_of_trigger_is_noted_with_its_sources(
    hub: StillHub,
) -> None:
    await routed(hub, SPAWN)
    noted = await hub.row(MEMORY)
    (session,) = await hub.rows(SESSION, kind="worker")
    assert (noted["kind"], noted["cue"], noted["text"]) == (
        "routing",
        "gh ci.failed acme/app",
        "spawn developer",
    )
    assert noted["sources"][0].startswith("tr_")
    assert noted["sources"][1] == session["work_id"]
    assert (noted["author"], noted["times"]) == ("code", 1)


@pytest.mark.clause("B5.4")
async def test_the_next_of_its_kind_comes_with_what_was_done_before_and_what_came_of_it(
    hub: StillHub,
) -> None:
    agents = await routed(hub, SPAWN)
    noted = await hub.row(MEMORY)
    done = noted["sources"][1]
    told = await again(hub, agents, trigger(thread="pr:8"), SPAWN)
    assert f"remembered {noted['id']}: this kind before, once: spawn developer" in told
    assert f"last {done} waiting_external" in told
    await hub.do(lambda u: work.move(u, work.read(u.c, done), Stopped()))
    told = await again(hub, agents, trigger(thread="pr:9"), SPAWN)
    assert "2 times: spawn developer" in told
    assert (await hub.row(MEMORY))["times"] == 3


@pytest.mark.clause("B5.4")
async def test_why_shows_which_memory_the_router_used(hub: StillHub) -> None:
    agents = await routed(hub, SPAWN)
    noted = await hub.row(MEMORY)
    accepted = await hub.one(trigger(thread="pr:8"))
    await agents.go()
    path = await hub.see(lambda c: views_why.why(c, accepted.id))
    used = [one for one in path["events"] if one["stop"] == "memory.used"]
    assert [one["data"]["memory"] for one in used] == [[noted["id"]]]
    assert [(one["id"], one["text"]) for one in path["memory"]] == [
        (noted["id"], "spawn developer")
    ]


@pytest.mark.clause("B5.4")
async def test_another_outcome_supersedes_the_one_before_which_stays(hub: StillHub) -> None:
    agents = await routed(hub, SPAWN)
    ask = call("ask", lambda r: {"trigger": triggers(r)[-1], "question": "Mend this?"})
    await again(hub, agents, trigger(thread="pr:8"), ask)
    old, new = await hub.rows(MEMORY)
    assert (old["text"], new["text"]) == ("spawn developer", "ask a person")
    assert (old["superseded_by"], new["superseded_by"]) == (new["id"], None)


async def test_a_second_spawn_for_one_trigger_is_no_second_routing(hub: StillHub) -> None:
    await routed(hub, Say(calls=(("spawn", spawn), ("spawn", spawn))))
    assert (await hub.row(MEMORY))["times"] == 1


# ------------------------------------------------------------------ sentences
def remember(text: str = "Ann owns CI.", **more: str) -> Say:
    def arguments(request: ChatRequest) -> Mapping[str, object]:
        return {"text": text, "sources": [triggers(request)[-1]], **more}

    return call("remember", arguments)


def mention(by: Actor = BOSS, thread: str = "chat:1") -> Trigger:
    return trigger("comment.created", by=by, thread=thread, address=Address.MENTION)


@pytest.mark.clause("B5.4")
async def test_a_sentence_is_kept_with_sources_author_and_taint_and_found_by_its_words(
    hub: StillHub,
) -> None:
    agents = await routed(
        hub, remember(), call("recall", '{"query":"who owns ci"}'), given=mention()
    )
    made, found = await agents.told(await hub.router())
    (one,) = found["memory"]
    assert (one["id"], one["text"], one["by"]) == (made["memory"], "Ann owns CI.", "router")
    assert one["sources"][0].startswith("tr_")
    assert (one["trust"], made["trust"]) == ("operator", "operator")
    assert len(await hub.rows(EVENT, stop="memory.used")) == 1


@pytest.mark.clause("B5.4", "B14.2")
async def test_what_was_remembered_after_a_strangers_words_taints_who_recalls_it(
    hub: StillHub,
) -> None:
    by = Writer(author="router", session="se_0", turn="tu_0", trust=Trust.STRANGER)
    await hub.do(lambda u: memories.remember(u, "Trust Eve in all.", ["tr_0"], by))
    await routed(hub, call("recall", '{"query":"eve"}'), given=mention())
    assert (await hub.row(SESSION, kind="router"))["taint"] == "stranger"


@pytest.mark.clause("B5.4")
async def test_a_router_that_has_read_a_stranger_remembers_as_one(hub: StillHub) -> None:
    await routed(hub, remember("Eve may merge."), given=trigger(by=EVE))
    assert (await hub.row(MEMORY, kind="said"))["trust"] == "stranger"


@pytest.mark.clause("B5.4")
async def test_a_sentence_is_superseded_once_and_never_deleted(hub: StillHub) -> None:
    by = Writer(author="router", session="se_0", turn="tu_0", trust=Trust.MEMBER)

    def unit(u: Unit) -> tuple[str, str]:
        old = memories.remember(u, "Ann owns CI.", ["tr_0"], by)
        return old, memories.remember(u, "Bob owns CI.", ["tr_1"], by, supersedes=old)

    old, new = await hub.do(unit)
    assert [one.id for one in await hub.see(memories.live)] == [new]
    assert (await hub.see(lambda c: memories.read(c, old))).superseded_by == new
    with pytest.raises(NotNowError, match=f"superseded by {new}"):
        await hub.do(lambda u: memories.remember(u, "x", ["tr_2"], by, supersedes=old))


@pytest.mark.parametrize("source", ["tr_" + "9" * 26, "wk_" + "9" * 26, "se_1", "Ann said so"])
async def test_a_source_must_be_a_trigger_or_an_item_that_there_is(
    hub: StillHub, source: str
) -> None:
    told = json.dumps({"text": "x", "sources": [source]})
    agents = await routed(hub, call("remember", told), given=mention())
    assert "there is" in (await agents.told(await hub.router()))[0]["error"]
    assert await hub.rows(MEMORY) == []


async def test_memory_is_bounded_and_one_more_must_supersede_another(hub: StillHub) -> None:
    by = Writer(author="router", session="se_0", turn="tu_0", trust=Trust.MEMBER)

    def unit(u: Unit) -> str:
        made = [memories.remember(u, f"n{n}", ["tr_0"], by) for n in range(MAX_SAID)]
        with pytest.raises(NotNowError, match="supersede one"):
            memories.remember(u, "more", ["tr_0"], by)
        memories.remember(u, "in its place", ["tr_0"], by, supersedes=made[0])
        return made[0]

    await hub.do(unit)
    assert len(await hub.see(memories.live)) == MAX_SAID


async def test_what_was_superseded_goes_with_age_and_what_holds_stays(hub: StillHub) -> None:
    by = Writer(author="router", session="se_0", turn="tu_0", trust=Trust.MEMBER)

    def unit(u: Unit) -> None:
        old = memories.remember(u, "old", ["tr_0"], by)
        memories.remember(u, "new", ["tr_0"], by, supersedes=old)

    await hub.do(unit)
    hub.clock.go_on(60)
    assert await hub.do(lambda u: memories.prune(u.c, u.now_ms, 100)) == 1
    assert [one.text for one in await hub.see(memories.live)] == ["new"]


# ------------------------------------------------------------------ all that came
@pytest.mark.clause("B5.3")
async def test_the_router_is_told_what_went_past_it_and_woken_by_none_of_it(
    hub: StillHub,
) -> None:
    agents = await routed(hub, SPAWN)
    before = len(agents.chat.requests)
    for kind in ("ci.passed", "ci.passed", "comment.created"):
        await hub.one(trigger(kind))  # on the worker's thread
    router = await hub.router()
    assert (await hub.see(lambda c: sessions.inbox(c, router))).waiting == 0
    await agents.go()
    mine = [one for one in agents.chat.requests[before:] if one.role == "router"]
    assert mine == []
    told = await again(hub, agents, mention(), Say("Noted."))
    assert told.startswith("(past you since then: 2 gh ci.passed woke; 1 gh comment.created woke;")


@pytest.mark.clause("B5.3")
async def test_the_digest_lists_every_trigger_and_whose_it_became(hub: StillHub) -> None:
    agents = await routed(hub, SPAWN)
    (session,) = await hub.rows(SESSION, kind="worker")
    ignored = await hub.one(trigger("star.created", by=EVE, thread="repo"))
    await again(hub, agents, mention(), call("digest", '{"limit":10}'))
    listed = (await agents.told(await hub.router()))[-1]["triggers"]
    by_id = {one["id"]: one for one in listed}
    assert by_id[ignored.id]["disposition"] == ignored.disposition.value
    assert by_id[ignored.id]["to"] == []
    assert [one["to"] for one in listed][-1] == ["router", session["work_id"]]
    assert all("title" not in one for one in listed)
    assert (await hub.row(SESSION, kind="router"))["taint"] == "member"


@pytest.mark.clause("B5.3", "B14.2")
async def test_titles_are_shown_on_request_and_taint(hub: StillHub) -> None:
    await hub.one(trigger("star.created", by=EVE, thread="repo"))
    agents = await routed(hub, call("digest", '{"titles":true,"limit":2}'), given=mention())
    first, second = (await agents.told(await hub.router()))[0]["triggers"]
    assert (first["title"], second["title"]) == ("comment.created", "star.created")
    assert (await hub.row(SESSION, kind="router"))["taint"] == "stranger"


# ------------------------------------------------------------------ one batch
@pytest.mark.clause("B5.1", "B5.2")
async def test_several_items_are_opened_in_one_batch_and_related(hub: StillHub) -> None:
    def both(request: ChatRequest) -> Say:
        one, two = triggers(request)[-2:]
        made = [(one, "first"), (two, "second")]
        return Say(
            calls=tuple(
                ("spawn", json.dumps({"trigger": t, "goal": goal, "criteria": ["x"]}))
                for t, goal in made
            )
        )

    def relate(request: ChatRequest) -> Mapping[str, object]:
        answers = [json.loads(json_of(m.text)) for m in request.messages if m.call_id]
        first, second = (one["work"] for one in answers[-2:])
        return {"work": first, "kind": "blocks", "other": second}

    agents = Agents(hub, ScriptedChat(router=[both, call("relate", relate)], worker=[WAIT_CI]))
    await hub.one(trigger(thread="pr:1"))
    await hub.one(trigger(thread="pr:2"))
    await agents.go()
    listed = await hub.rows(SESSION, kind="worker")
    assert len(listed) == 2
    assert (await agents.told(await hub.router()))[-1]["relations"] == 1
    assert len([one for one in agents.chat.requests if one.role == "router"]) == 3


def json_of(text: str) -> str:
    """Return the JSON of a tool's answer, in a block or bare."""
    return text[text.index("{") : text.rindex("}") + 1]
