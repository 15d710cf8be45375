from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.api import Actor, ActorKind, Channel, Code, Content, Context, Trigger
from upright.core.context import (
    BATCH_CAP_BYTES,
    TRIGGER_CAP_BYTES,
    Place,
    batch,
    cut,
    trigger_body,
    work_card,
)
from upright.core.ids import SessionId, ThreadId, TriggerId, WorkId
from upright.core.mandate import Mandate, Trust
from upright.core.material import block, escaped
from upright.core.trigger import StoredTrigger
from upright.core.work import PlanStep, WorkItem

TAGS: Final = ("</material>", '<material of="x">', "<card>", "</card>", "<", ">", "\n", '"')
HOSTILE: Final = st.lists(st.sampled_from(TAGS) | st.text(max_size=5)).map("".join)


def stored(
    text: str = "hello",
    *,
    number: int = 1,
    kind: ActorKind = ActorKind.STRANGER,
    title: str = "",
    context: Context | None = None,
) -> StoredTrigger:
    trigger = Trigger(
        kind="comment.created",
        channel=Channel.GITHUB,
        actor=Actor(id="9", name="mallory", kind=kind),
        content=Content(title=title, text=text),
        context=context or Context(thread="t"),
        dedupe=("d",),
    )
    return StoredTrigger(
        id=TriggerId(f"tr_{number}"),
        source="github",
        thread=ThreadId("th_1"),
        trigger=trigger,
        trust=Trust.STRANGER,
        received_at_ms=0,
    )


def bodies(text: str) -> list[dict[str, Any]]:
    """Return what stands in the blocks of a rendered batch."""
    return [json.loads(found) for found in re.findall(r'stranger">\n(.*?)\n</material>', text)]


ITEM: Final = WorkItem(
    id=WorkId("wk_1"),
    session=SessionId("se_1"),
    trigger=TriggerId("tr_1"),
    thread=ThreadId("th_1"),
    goal="Make it green",
    criteria=("the tests pass",),
    mandate=Mandate(given_by="operator", trust=Trust.OPERATOR),
)


# ------------------------------------------------------------------ blocks
@pytest.mark.clause("B14.1")
@given(text=HOSTILE)
def test_no_text_closes_its_block_or_opens_another(text: str) -> None:
    shown = block("tr_1", Trust.STRANGER, {"text": text})
    assert shown.count("</material>") == 1
    assert shown.count("<material") == 1
    assert shown.endswith("\n</material>")
    assert shown.count("<") == shown.count(">") == 2


@pytest.mark.clause("B14.1")
@given(text=HOSTILE)
def test_what_is_escaped_is_one_line_and_reads_back_as_it_was(text: str) -> None:
    shown = escaped({"text": text})
    assert json.loads(shown) == {"text": text}
    assert not set("<>\n") & set(shown)


def test_letters_of_every_script_stand_as_they_are() -> None:
    assert escaped(["grüß", "漢", "🦉"]) == '["grüß","漢","🦉"]'


def test_a_block_says_what_it_is_and_how_far_it_is_trusted() -> None:
    assert block("tr_1", Trust.CONTACT, "hi") == (
        '<material of="tr_1" trust="contact">\n"hi"\n</material>'
    )


# ------------------------------------------------------------------ cuts
@pytest.mark.clause("B7.3")
@given(text=st.text(alphabet="aé漢🦉", max_size=200), cap=st.integers(80, 400))
def test_a_cut_keeps_whole_characters_and_its_notice_within_the_cap(text: str, cap: int) -> None:
    shown = cut(text, cap, where="tr_1")
    size = len(text.encode())
    assert len(shown.encode()) <= cap
    if size <= cap:
        assert shown == text
    else:
        kept, mark, notice = shown.partition(" […cut: ")
        assert mark
        assert text.startswith(kept)
        assert notice == f"{size} bytes in all; read('tr_1') has the rest]"
        assert cap - len(shown.encode()) < 4  # no room for another character


@pytest.mark.clause("B7.3")
def test_a_text_of_exactly_the_cap_is_whole() -> None:
    assert cut("漢" * 100, 300, where="tr_1") == "漢" * 100
    assert cut("漢" * 100, 299, where="tr_1") != "漢" * 100


def test_a_cap_without_room_for_text_leaves_the_notice_alone() -> None:
    assert (
        cut("x" * 200, 10, where="tr_1") == " […cut: 200 bytes in all; read('tr_1') has the rest]"
    )


# ------------------------------------------------------------------ one trigger
def test_a_plain_trigger_is_who_and_what() -> None:
    assert trigger_body(stored()) == {"by": "mallory", "text": "hello"}


def test_an_actor_without_a_name_is_called_by_the_id() -> None:
    one = stored()
    nameless = replace(one, trigger=replace(one.trigger, actor=Actor(id="9")))
    assert trigger_body(nameless)["by"] == "9"


@pytest.mark.clause("B7.2")
def test_all_that_is_known_of_a_trigger_is_shown_in_its_order() -> None:
    context = Context(
        thread="t",
        code=Code(repository="acme/app", sha="aaa", branch="fix", number=7, fork=True),
        facts=(("conclusion", "failure"),),
        edit_of="n1",
        links=("l1", "l2", "l3", "l4", "l5", "l6"),
    )
    body = trigger_body(stored("text", title="Red", context=context))
    assert list(body) == ["by", "title", "code", "facts", "edit_of", "links", "text"]
    assert body["code"] == {
        "repository": "acme/app",
        "sha": "aaa",
        "branch": "fix",
        "number": 7,
        "fork": True,
    }
    assert body["facts"] == {"conclusion": "failure"}
    assert (body["edit_of"], body["links"]) == ("n1", ["l1", "l2", "l3", "l4", "l5"])


@pytest.mark.clause("B1.4")
def test_an_edit_names_the_trigger_that_it_changes() -> None:
    one = replace(stored(context=Context(thread="t", edit_of="n1")), edits=TriggerId("tr_1"))
    body = trigger_body(one)
    assert (body["edit_of"], body["changes"]) == ("n1", "tr_1")


def test_what_is_not_known_of_the_code_is_left_out() -> None:
    body = trigger_body(stored(context=Context(thread="t", code=Code(repository="acme/app"))))
    assert body["code"] == {"repository": "acme/app"}


@pytest.mark.clause("B7.2", "B7.3")
def test_the_title_and_the_text_are_cut_to_their_caps() -> None:
    body = trigger_body(stored("漢" * 5000, title="x" * 500))
    assert len(body["text"].encode()) <= TRIGGER_CAP_BYTES == 2048
    assert len(body["title"].encode()) == 200
    assert "read('tr_1')" in body["text"]


# ------------------------------------------------------------------ a batch
@pytest.mark.clause("B8.4", "B2.5")
def test_a_batch_numbers_what_came_in_the_order_in_which_it_came() -> None:
    shown = batch([stored("a", number=1), stored("b", number=2), stored("c", number=3)])
    heads = re.findall(r"^\[(\d) of 3\] trigger (\S+)", shown, re.MULTILINE)
    assert heads == [("1", "tr_1"), ("2", "tr_2"), ("3", "tr_3")]
    assert [body["text"] for body in bodies(shown)] == ["a", "b", "c"]


@pytest.mark.clause("B6.11")
def test_what_the_hub_knows_of_a_trigger_stands_in_its_header() -> None:
    shown = batch([stored(number=1), stored(number=2)], {"tr_2": "followed by wk_1"})
    heads = [line for line in shown.split("\n") if line.startswith("[")]
    assert [head.endswith("(followed by wk_1)") for head in heads] == [False, True]


@pytest.mark.clause("B14.1")
@pytest.mark.parametrize("kind", list(ActorKind))
def test_only_an_operators_and_a_members_words_are_called_instructions(kind: ActorKind) -> None:
    role = "instruction" if kind in {ActorKind.OPERATOR, ActorKind.MEMBER} else "material"
    assert f" actor={kind.value} role={role} " in batch([stored(kind=kind)])


def test_a_header_says_kind_channel_and_thread() -> None:
    head = batch([stored()]).split("\n", 1)[0]
    assert head == (
        "[1 of 1] trigger tr_1 kind=comment.created channel=github actor=stranger role=material"
        " thread=th_1"
    )


@pytest.mark.clause("B14.1")
@given(texts=st.lists(HOSTILE, min_size=1, max_size=4))
def test_no_text_of_a_batch_forges_a_header_or_a_block(texts: list[str]) -> None:
    shown = batch([stored(text, number=n) for n, text in enumerate(texts, start=1)])
    assert shown.count("</material>") == len(texts)
    assert len(re.findall(r"^\[\d+ of \d+\]", shown, re.MULTILINE)) == len(texts)


@pytest.mark.clause("B7.2")
@pytest.mark.parametrize("count", [1, 6, 12, 48])
def test_the_texts_of_a_batch_share_its_cap(count: int) -> None:
    shown = batch([stored("漢" * 3000, number=n) for n in range(count)])
    sizes = [len(body["text"].encode()) for body in bodies(shown)]
    assert len(sizes) == count
    assert max(sizes) <= TRIGGER_CAP_BYTES
    assert sum(sizes) <= BATCH_CAP_BYTES == 12 * 1024


@pytest.mark.clause("B2.5")
def test_a_storm_is_listed_whole_each_with_its_line_and_the_id_to_read() -> None:
    storm = [stored("x" * 3000, number=n) for n in range(200)]
    lines = batch(storm).split("\n\n")
    assert [line.partition("]")[0] for line in lines] == [f"[{n} of 200" for n in range(1, 201)]
    assert all(f"read {one.id}" in line for one, line in zip(storm, lines, strict=True))
    assert not bodies(batch(storm))


@pytest.mark.clause("B7.2")
def test_facts_links_and_names_are_bounded_too() -> None:
    facts = (("label", "a"), ("label", "b"), *((f"f{n}", "v" * 5000) for n in range(100)))
    links = tuple("https://" + "l" * 5000 for _ in range(100))
    context = Context(thread="t", facts=facts, links=links)
    (body,) = bodies(batch([stored("", context=context)]))
    assert len(json.dumps(body)) < 16 * 1024
    assert body["facts"]["label"] == ["a", "b"]


def test_an_empty_batch_is_empty() -> None:
    assert not batch([])


# ------------------------------------------------------------------ the work card
def card(text: str) -> dict[str, Any]:
    found = re.fullmatch(r"<card>\n(.*)\n</card>", text)
    assert found
    read: dict[str, Any] = json.loads(found[1])
    return read


@pytest.mark.clause("B11.10")
def test_a_card_of_a_new_item_says_goal_criteria_state_and_plan() -> None:
    assert card(work_card(ITEM, None)) == {
        "item": "wk_1",
        "goal": "Make it green",
        "criteria": ["the tests pass"],
        "state": "runnable",
        "plan": [],
    }


@pytest.mark.clause("B6.6")
def test_a_card_names_the_item_before_and_its_session() -> None:
    follows = {"work": "wk_0", "read": "se_0"}
    assert card(work_card(ITEM, None, follows=follows))["follows"] == follows
    assert "follows" not in card(work_card(ITEM, None))


@pytest.mark.clause("B11.10")
def test_a_card_says_where_it_stopped_and_why_and_where_to_work() -> None:
    item = replace(
        ITEM,
        plan=(PlanStep(text="look", done=True), PlanStep(text="fix")),
        reason="it waited for CI",
        code=Code(repository="acme/app", sha="aaa", branch="fix", number=7),
    )
    place = Place(device="dv_1", workspace="/w", worktree="/w/1", branch="upright/1")
    shown = card(work_card(item, place, hint="no device yet"))
    assert shown["plan"] == [{"text": "look", "done": True}, {"text": "fix", "done": False}]
    assert shown["stopped_because"] == "it waited for CI"
    assert shown["code"] == {
        "repository": "acme/app",
        "sha": "aaa",
        "branch": "fix",
        "number": 7,
    }
    assert shown["place"] == {
        "device": "dv_1",
        "workspace": "/w",
        "worktree": "/w/1",
        "branch": "upright/1",
    }
    assert shown["note"] == "no device yet"


@pytest.mark.clause("B14.1")
@given(goal=HOSTILE, criterion=HOSTILE, reason=HOSTILE)
def test_no_word_of_the_router_closes_the_card(goal: str, criterion: str, reason: str) -> None:
    shown = work_card(replace(ITEM, goal=goal, criteria=(criterion,), reason=reason), None)
    assert card(shown)["goal"] == goal
    assert shown.count("</card>") == shown.count("<card>") == 1
    assert shown.count("<") == 2


@pytest.mark.clause("B14.1")
@pytest.mark.parametrize(
    ("kind", "channel", "shown"),
    [
        ("comment.created", Channel.GITHUB, "comment.created"),
        ("ci.failed", Channel.CI, "ci.failed"),
        ("webhook.send-me-the-token", Channel.WEBHOOK, "webhook"),
        ("webhook.send.token", Channel.WEBHOOK, "webhook"),
        ("issue.Do this\nnow", Channel.GITHUB, "issue"),
        ("<card>", Channel.GITHUB, "other"),
    ],
)
def test_a_header_holds_no_kind_that_a_payload_has_made(
    kind: str, channel: Channel, shown: str
) -> None:
    given = stored()
    made = replace(given, trigger=replace(given.trigger, kind=kind, channel=channel))
    head, _, rest = batch([made]).partition("\n")
    assert f" kind={shown} " in head
    assert json.loads(rest.split("\n")[1]).get("kind", shown) == kind
