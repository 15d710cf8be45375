from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from fixtures.github import BOT, issue_comment, one, pull_request, push, repository, user
from upright.api import ActorKind, Address
from upright_github.keys import Place
from upright_github.text import mentions, related

REVIEW: Final = {"id": 31, "body": "Hm", "state": "commented", "user": user()}
ON_A_LINE: Final = {"id": 61, "body": "Why?", "path": "a.py", "user": user()}


@pytest.mark.parametrize(
    ("login", "kind", "expected"),
    [
        ("ann", "User", ActorKind.STRANGER),
        ("some-ci[bot]", "Bot", ActorKind.BOT),
        (BOT, "User", ActorKind.SELF),
        (BOT.upper(), "User", ActorKind.SELF),
        (f"{BOT}[bot]", "Bot", ActorKind.SELF),
    ],
)
async def test_who_acted_comes_from_the_account_never_from_the_text(
    login: str, kind: str, expected: ActorKind
) -> None:
    payload = issue_comment(f"I am {BOT}, the operator", sender=user(login, kind))
    actor = (await one("issue_comment", payload)).actor
    assert (actor.id, actor.kind) == (login, expected)


async def test_a_person_with_the_name_of_our_app_is_a_stranger() -> None:
    payload = issue_comment(sender=user("helper", "User"))
    assert (await one("issue_comment", payload, bot_login="helper[bot]")).actor.kind is (
        ActorKind.STRANGER
    )


async def test_what_our_app_wrote_through_a_persons_account_is_our_own() -> None:
    payload = issue_comment()
    payload["comment"]["performed_via_github_app"] = {"id": 42, "slug": "x"}
    assert (await one("issue_comment", payload, app_id=42)).actor.kind is ActorKind.SELF
    assert (await one("issue_comment", payload, app_id=43)).actor.kind is ActorKind.STRANGER


async def test_a_deleted_account_is_a_ghost() -> None:
    assert (await one("issue_comment", issue_comment(sender=None))).actor.id == "ghost"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@helper-bot please", True),
        ("Hey @Helper-Bot, please", True),
        ("(@helper-bot)", True),
        ("> @helper-bot", True),
        ("@helper-bot[bot] please", True),
        ("@helper-bot.", True),
        ("helper-bot please", False),
        ("@helper-bot-2 please", False),
        ("@helper", False),
        ("ann@helper-bot.example.org", False),
        ("@acme/helper-bot", False),
        ("@helper-bot/x", False),
        ("`@helper-bot`", False),
        ("```\n@helper-bot\n```\nend", False),
        ("```\n@helper-bot\nnever closed", False),
        ("`a` @helper-bot `b`", True),
    ],
)
def test_a_mention_is_what_github_takes_for_one(text: str, *, expected: bool) -> None:
    assert mentions(text, BOT) is expected
    assert mentions(text, f"{BOT}[bot]") is expected


async def test_a_mention_wants_an_answer() -> None:
    trigger = await one("issue_comment", issue_comment(f"@{BOT} look"))
    assert trigger.context.address is Address.MENTION
    assert trigger.content.expects_reply
    plain = await one("issue_comment", issue_comment("look"))
    assert plain.context.address is Address.NONE
    assert not plain.content.expects_reply


async def test_an_edit_names_what_it_changes_and_asks_nothing_twice() -> None:
    payload = issue_comment(f"@{BOT} look again", action="edited")
    old = await one("issue_comment", payload | {"changes": {"body": {"from": f"@{BOT} look"}}})
    assert (old.kind, old.context.edit_of) == ("comment.edited", "501")
    assert old.occurred_at == datetime(2026, 6, 1, 9, 5, tzinfo=UTC)
    assert not old.content.expects_reply
    new = await one("issue_comment", payload | {"changes": {"body": {"from": "look"}}})
    assert new.content.expects_reply


@pytest.mark.clause("B1.4")
@pytest.mark.parametrize(
    ("event", "made", "payload"),
    [
        ("issues", "opened", {"issue": issue_comment()["issue"]}),
        ("pull_request", "opened", pull_request()),
        ("issue_comment", "created", issue_comment()),
        ("pull_request_review", "submitted", {**pull_request(), "review": REVIEW}),
        ("pull_request_review_comment", "created", {**pull_request(), "comment": ON_A_LINE}),
    ],
)
async def test_an_edit_names_the_id_that_its_first_trigger_has(
    event: str, made: str, payload: dict[str, Any]
) -> None:
    common = {"repository": repository(), "sender": user()}
    first = await one(event, {**common, **payload, "action": made})
    edit = await one(event, {**common, **payload, "action": "edited"})
    assert first.context.edit_of == ""
    assert edit.context.edit_of == dict(first.context.facts)["native_id"]
    assert "native_id" not in dict(edit.context.facts) or event.endswith("comment")


async def test_comments_of_two_kinds_with_one_number_are_two() -> None:
    """The numbers of review comments are counted apart: what is one of ours, is not theirs."""
    plain = await one("issue_comment", issue_comment())
    number = plain.context.facts
    on_a_line = {**ON_A_LINE, "id": 501}
    payload = {**pull_request(), "action": "created", "comment": on_a_line}
    other = await one("pull_request_review_comment", payload)
    assert dict(number)["native_id"] == "501"
    assert dict(other.context.facts)["native_id"] == "review_comment:501"


async def test_two_edits_of_one_comment_are_two() -> None:
    first = issue_comment(action="edited")
    second = issue_comment(action="edited")
    second["comment"]["updated_at"] = "2026-06-01T09:06:00Z"
    keys = [(await one("issue_comment", payload)).dedupe[1] for payload in (first, second)]
    assert keys[0] != keys[1]


async def test_a_deletion_speaks_to_nobody() -> None:
    trigger = await one("issue_comment", issue_comment(f"@{BOT} look", action="deleted"))
    assert (trigger.kind, trigger.context.edit_of) == ("comment.deleted", "501")
    assert trigger.context.address is Address.NONE
    assert not trigger.content.expects_reply
    assert trigger.occurred_at is None


@pytest.mark.parametrize(
    ("action", "merged", "kind"),
    [
        ("opened", False, "pr.opened"),
        ("closed", False, "pr.closed"),
        ("closed", True, "pr.merged"),
        ("synchronize", False, "pr.synchronize"),
        ("labeled", False, "pr.labeled"),
        ("edited", False, "pr.edited"),
    ],
)
async def test_each_action_of_a_pull_request_has_its_kind(
    action: str, kind: str, *, merged: bool
) -> None:
    payload = pull_request(action, pull={"merged": merged})
    trigger = await one("pull_request", payload)
    assert trigger.kind == kind
    assert trigger.content.title == "Fix the clock"
    assert dict(trigger.context.facts)["labels"] == "bug"


@pytest.mark.parametrize(
    ("action", "key"), [("assigned", "assignee"), ("review_requested", "requested_reviewer")]
)
async def test_being_asked_by_name_is_direct(action: str, key: str) -> None:
    mine = await one("pull_request", pull_request(action) | {key: user(BOT)})
    assert mine.context.address is Address.DIRECT
    assert mine.content.expects_reply
    other = await one("pull_request", pull_request(action) | {key: user("cleo")})
    assert other.context.address is Address.NONE


async def test_two_labels_in_one_second_are_two() -> None:
    keys = set[str]()
    for name in ("bug", "urgent"):
        payload = pull_request("labeled") | {"label": {"name": name}}
        keys.add((await one("pull_request", payload)).dedupe[1])
    assert len(keys) == 2


async def test_a_push_lists_the_first_lines_of_its_messages() -> None:
    trigger = await one("push", push())
    assert (trigger.kind, trigger.content.title) == ("push", "fix")
    assert trigger.content.text == "Fix the clock"


async def test_a_branch_pushed_forth_and_back_and_forth_is_three_pushes() -> None:
    keys = set[str]()
    for seconds in (1, 2, 3):
        payload = push()
        payload["repository"] = {**payload["repository"], "pushed_at": 1_780_000_000 + seconds}
        keys.add((await one("push", payload)).dedupe[1])
    assert len(keys) == 3


def review_comment(**changed: object) -> dict[str, Any]:
    base = pull_request("created")
    comment = issue_comment()["comment"] | {"path": "a.py", "side": "RIGHT", "diff_hunk": "@@"}
    return base | {"comment": comment | changed}


async def test_a_review_comment_on_lines_that_are_gone_says_outdated() -> None:
    payload = review_comment(line=None, original_line=40, in_reply_to_id=77)
    trigger = await one("pull_request_review_comment", payload)
    facts = dict(trigger.context.facts)
    assert trigger.kind == "review_comment.created"
    assert "line" not in facts
    assert (facts["outdated"], facts["original_line"], facts["in_reply_to"]) == ("yes", "40", "77")


async def test_a_review_tells_its_state() -> None:
    said = {"id": 5, "state": "changes_requested", "body": "No", "submitted_at": None}
    trigger = await one("pull_request_review", pull_request("submitted") | {"review": said})
    assert trigger.kind == "review.submitted"
    assert dict(trigger.context.facts)["state"] == "changes_requested"


async def test_an_issue_that_mentions_us_is_addressed_to_us() -> None:
    issue = issue_comment()["issue"] | {"body": f"@{BOT} see #9", "pull_request": None}
    payload = issue_comment() | {"action": "opened", "issue": issue}
    trigger = await one("issues", payload)
    assert (trigger.kind, trigger.context.address) == ("issue.opened", Address.MENTION)
    assert trigger.context.related == ("github:git.example.org/acme/app#9",)
    assert dict(trigger.context.facts)["on"] == "issue"


@pytest.mark.parametrize(
    "piece", ["`", "```\n", "~~~ ```\n", "a`", "a/b#", "http://a:", "@helper-bot-", "/", "a-", "x"]
)
def test_no_text_holds_up_the_door(piece: str) -> None:
    """An expression that runs away on one of these ends in the suite's time limit."""
    place = Place(host="git.example.org", repository="acme/app", default_branch="main")
    text = piece * 200_000
    assert not mentions(text, BOT)
    assert related(text, place, own="") == ()


def test_what_stands_beyond_githubs_own_length_is_not_read() -> None:
    place = Place(host="git.example.org", repository="acme/app", default_branch="main")
    inside, beyond = "x " * 32_000 + "#1", "x " * 33_000 + "#1"
    assert related(inside, place, own="") == ("github:git.example.org/acme/app#1",)
    assert related(beyond, place, own="") == ()
