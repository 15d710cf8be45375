from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.api import Actor, ActorKind, Address, Channel, Code, Content, Context, Trigger
from upright.core.gate import DEFAULT_RULES, Mode, Rule, Rules, Verdict, judge, matches
from upright.core.mandate import Trust
from upright.core.trigger import Origin

TRIGGER: Final = Trigger(
    kind="comment.created",
    channel=Channel.GITHUB,
    actor=Actor(id="1001"),
    content=Content(title="Red again", text="Please LOOK at the build"),
    context=Context(
        thread="github:acme/app#7",
        address=Address.MENTION,
        code=Code(repository="acme/app"),
        facts=(("label", "bug"), ("label", "urgent"), ("base", "main")),
    ),
    dedupe=("d1",),
)


def by(kind: ActorKind, *, listed: bool = False, actor_id: str = "1001") -> Origin:
    return Origin(actor=Actor(id=actor_id, kind=kind), trust=Trust.STRANGER, listed=listed)


MEMBER: Final = by(ActorKind.MEMBER)
ANYTHING: Final = Rule(name="anything", verdict=Verdict.EXPLICIT)


# ------------------------------------------------------------------ each field
@pytest.mark.clause("B3.2")
@pytest.mark.parametrize(
    ("rule", "hit"),
    [
        (ANYTHING, True),
        (replace(ANYTHING, sources=("work", "github")), True),
        (replace(ANYTHING, sources=("gitlab",)), False),
        (replace(ANYTHING, kinds=("pr.*", "comment.*")), True),
        (replace(ANYTHING, kinds=("comment.create?",)), True),
        (replace(ANYTHING, kinds=("comment",)), False),
        (replace(ANYTHING, kinds=("comment?created?",)), False),
        (replace(ANYTHING, kinds=("commentXcreated",)), False),
        (replace(ANYTHING, scopes=("acme/*",)), True),
        (replace(ANYTHING, scopes=("acme/other",)), False),
        (replace(ANYTHING, actor_kinds=(ActorKind.BOT, ActorKind.MEMBER)), True),
        (replace(ANYTHING, actor_kinds=(ActorKind.OPERATOR,)), False),
        (replace(ANYTHING, actors=("7", "1001")), True),
        (replace(ANYTHING, actors=("100",)), False),
        (replace(ANYTHING, addresses=(Address.MENTION,)), True),
        (replace(ANYTHING, addresses=(Address.DIRECT, Address.NONE)), False),
        (replace(ANYTHING, facts=(("base", "ma*"),)), True),
        (replace(ANYTHING, facts=(("base", "dev"),)), False),
        (replace(ANYTHING, facts=(("head", "*"),)), False),
        (replace(ANYTHING, facts=(("label", "bug"), ("label", "urgent"))), True),
        (replace(ANYTHING, facts=(("label", "bug"), ("label", "wontfix"))), False),
        (replace(ANYTHING, text="look at"), True),
        (replace(ANYTHING, text="RED AGAIN"), True),
        (replace(ANYTHING, text="green"), False),
        (replace(ANYTHING, listed_bots=False), True),
        (replace(ANYTHING, listed_bots=True), False),
    ],
    ids=lambda value: None,
)
def test_each_given_field_must_match_and_an_empty_one_matches_anything(
    *, rule: Rule, hit: bool
) -> None:
    assert matches(rule, "github", TRIGGER, MEMBER) is hit


@pytest.mark.clause("B3.2")
def test_all_given_fields_must_match_together() -> None:
    both = replace(ANYTHING, kinds=("comment.*",), actors=("nobody",))
    assert not matches(both, "github", TRIGGER, MEMBER)


def test_a_scope_does_not_match_a_trigger_without_code() -> None:
    bare = replace(TRIGGER, context=Context(thread="t"))
    assert not matches(replace(ANYTHING, scopes=("acme/*",)), "github", bare, MEMBER)
    assert matches(ANYTHING, "github", bare, MEMBER)


@pytest.mark.clause("B3.2")
@pytest.mark.parametrize(
    ("glob", "value", "hit"),
    [
        ("*", "", True),
        ("**", "abc", True),
        ("a*", "a", True),
        ("*a", "ba", True),
        ("*a", "ab", False),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "acb", False),
        ("*ab?*c", "xxabab1yyc", True),
        ("*ab?*c", "xabc", False),
        ("a.c", "abc", False),
        ("*?", "", False),
        ("ab*ba", "aba", False),
    ],
)
def test_a_glob_is_a_star_a_question_mark_and_else_the_letter(
    glob: str, value: str, *, hit: bool
) -> None:
    odd = replace(TRIGGER, context=Context(thread="t", facts=(("f", value),)))
    assert matches(replace(ANYTHING, facts=(("f", glob),)), "github", odd, MEMBER) is hit


@pytest.mark.clause("B3.2")
@pytest.mark.parametrize(
    "glob", ["*a" * 90 + "*b", "*a?" * 60 + "*bb", "*" * 500 + "b", "*aa" * 99]
)
def test_no_rule_makes_a_long_value_slow(glob: str) -> None:
    odd = replace(TRIGGER, context=Context(thread="t", facts=(("f", "a" * 10_000 + "c"),)))
    assert not matches(replace(ANYTHING, facts=(("f", glob),)), "github", odd, MEMBER)


@pytest.mark.clause("B3.2")
@given(glob=st.text("ab*?", max_size=8), value=st.text("ab", max_size=8))
def test_a_glob_agrees_with_the_expression_that_it_stands_for(glob: str, value: str) -> None:
    plain = glob.replace("*", ".*").replace("?", ".")
    odd = replace(TRIGGER, context=Context(thread="t", facts=(("f", value),)))
    rule = replace(ANYTHING, facts=(("f", glob),))
    assert matches(rule, "github", odd, MEMBER) is bool(re.fullmatch(plain, value))


@pytest.mark.clause("B3.2")
@pytest.mark.timeout(5)
def test_no_glob_and_no_value_holds_up_the_door() -> None:
    long = replace(TRIGGER, context=Context(thread="t", facts=(("f", "a" * 5_000),)))
    rule = replace(ANYTHING, facts=(("f", "*a" * 60 + "b"),))
    assert not matches(rule, "github", long, MEMBER)


def test_a_glob_reaches_over_a_line_break() -> None:
    odd = replace(TRIGGER, kind="a\nb")
    assert matches(replace(ANYTHING, kinds=("a*b",)), "github", odd, MEMBER)


# ------------------------------------------------------------------ the first match
@pytest.mark.clause("B3.1")
def test_the_first_rule_that_matches_wins() -> None:
    rules = Rules(
        version="v7",
        rules=(
            Rule(name="other", verdict=Verdict.EXPLICIT, kinds=("pr.*",)),
            Rule(name="first", verdict=Verdict.IGNORE),
            Rule(name="second", verdict=Verdict.EXPLICIT),
        ),
    )
    judged = judge(rules, "github", TRIGGER, MEMBER)
    assert (judged.verdict, judged.rule, judged.version) == (Verdict.IGNORE, "first", "v7")
    assert judged.reason == "comment.created by member 1001"
    assert judged.by_mode is False


@pytest.mark.clause("B3.1")
def test_without_a_match_a_trigger_is_a_candidate() -> None:
    judged = judge(Rules(version="v1", rules=()), "github", TRIGGER, MEMBER)
    assert (judged.verdict, judged.rule) == (Verdict.CANDIDATE, "default")
    assert judged.reason == "no rule matched"


@pytest.mark.clause("B3.4")
@given(title=st.text(), text=st.text())
def test_no_text_changes_a_verdict_of_rules_that_ask_for_none(title: str, text: str) -> None:
    said = replace(TRIGGER, content=Content(title=title, text=text))
    rules = Rules(version="v1", rules=DEFAULT_RULES)
    assert judge(rules, "github", said, MEMBER) == judge(rules, "github", TRIGGER, MEMBER)


@pytest.mark.clause("B2.5", "B9.2")
@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("said", [True, False])
def test_urgent_is_what_the_rule_says_and_not_what_the_text_or_its_sender_says(
    *, verdict: Verdict, said: bool
) -> None:
    hinted = replace(TRIGGER, content=Content(title="URGENT", text="urgent!", urgent=True))
    rules = Rules(version="v1", rules=(Rule(name="r", verdict=verdict, urgent=said),))
    judged = judge(rules, "github", hinted, MEMBER)
    assert judged.urgent is (said and verdict is not Verdict.IGNORE)
    assert judge(Rules(version="v1", rules=()), "github", hinted, MEMBER).urgent is False


# ------------------------------------------------------------------ modes
@pytest.mark.clause("B3.2")
@pytest.mark.parametrize(
    ("mode", "rule", "verdict"),
    [
        (Mode.CANDIDATES, Verdict.EXPLICIT, Verdict.EXPLICIT),
        (Mode.CANDIDATES, Verdict.CANDIDATE, Verdict.CANDIDATE),
        (Mode.CANDIDATES, Verdict.IGNORE, Verdict.IGNORE),
        (Mode.EXPLICIT_ONLY, Verdict.EXPLICIT, Verdict.EXPLICIT),
        (Mode.EXPLICIT_ONLY, Verdict.CANDIDATE, Verdict.IGNORE),
        (Mode.EXPLICIT_ONLY, Verdict.IGNORE, Verdict.IGNORE),
        (Mode.OFF, Verdict.EXPLICIT, Verdict.IGNORE),
        (Mode.OFF, Verdict.CANDIDATE, Verdict.IGNORE),
        (Mode.OFF, Verdict.IGNORE, Verdict.IGNORE),
    ],
)
def test_a_mode_bounds_what_a_source_may_bring(mode: Mode, rule: Verdict, verdict: Verdict) -> None:
    rules = Rules(version="v1", rules=(Rule(name="r", verdict=rule),), modes=(("github", mode),))
    judged = judge(rules, "github", TRIGGER, MEMBER)
    assert judged.verdict is verdict
    assert judged.by_mode is (mode is Mode.EXPLICIT_ONLY and rule is Verdict.CANDIDATE)


def test_a_mode_holds_for_its_own_source_only() -> None:
    rules = Rules(version="v1", rules=(ANYTHING,), modes=(("github", Mode.OFF),))
    assert judge(rules, "work", TRIGGER, MEMBER).verdict is Verdict.EXPLICIT


def test_a_mode_says_itself_as_the_reason() -> None:
    off = Rules(version="v1", rules=(ANYTHING,), modes=(("github", Mode.OFF),))
    assert judge(off, "github", TRIGGER, MEMBER).rule == "mode off"
    few = Rules(version="v1", rules=(), modes=(("github", Mode.EXPLICIT_ONLY),))
    judged = judge(few, "github", TRIGGER, MEMBER)
    assert judged.reason == "no rule matched; the source takes explicit triggers only"


# ------------------------------------------------------------------ the default rules
def comment(address: Address) -> Trigger:
    return replace(TRIGGER, context=Context(thread="t", address=address))


def ci(kind: str) -> Trigger:
    return replace(TRIGGER, kind=kind, context=Context(thread="t"))


@pytest.mark.clause("B3.2", "B3.3", "B1.5")
@pytest.mark.parametrize(
    ("trigger", "origin", "verdict", "rule"),
    [
        (comment(Address.MENTION), by(ActorKind.SELF), "ignore", "own output"),
        (ci("ci.queued"), by(ActorKind.BOT, listed=True), "ignore", "CI under way"),
        (ci("ci.started"), by(ActorKind.MEMBER), "ignore", "CI under way"),
        (ci("ci.failed"), by(ActorKind.BOT, listed=True), "candidate", "default"),
        (ci("ci.failed"), by(ActorKind.BOT), "ignore", "unknown bot"),
        (comment(Address.MENTION), by(ActorKind.BOT), "ignore", "unknown bot"),
        (comment(Address.MENTION), by(ActorKind.MEMBER), "explicit", "spoken to by one of us"),
        (comment(Address.DIRECT), by(ActorKind.OPERATOR), "explicit", "spoken to by one of us"),
        (comment(Address.NONE), by(ActorKind.MEMBER), "candidate", "default"),
        (ci("operator.said"), by(ActorKind.OPERATOR), "explicit", "the operator speaks"),
        (ci("operator.said"), by(ActorKind.MEMBER), "candidate", "default"),
        (comment(Address.MENTION), by(ActorKind.STRANGER), "candidate", "a stranger"),
        (comment(Address.DIRECT), by(ActorKind.CONTACT), "candidate", "a stranger"),
        (comment(Address.NONE), by(ActorKind.STRANGER), "candidate", "default"),
    ],
    ids=lambda value: None,
)
def test_the_default_rules_hold_behind_the_configuration(
    trigger: Trigger, origin: Origin, verdict: str, rule: str
) -> None:
    judged = judge(Rules(version="v1", rules=DEFAULT_RULES), "github", trigger, origin)
    assert (judged.verdict, judged.rule) == (verdict, rule)


@pytest.mark.clause("B14.1")
@pytest.mark.parametrize("kind", sorted(set(ActorKind) - {ActorKind.OPERATOR, ActorKind.MEMBER}))
@pytest.mark.parametrize("address", list(Address))
def test_by_default_only_an_operator_or_a_member_is_explicit(
    kind: ActorKind, address: Address
) -> None:
    rules = Rules(version="v1", rules=DEFAULT_RULES)
    judged = judge(rules, "github", comment(address), by(kind, listed=True))
    assert judged.verdict is not Verdict.EXPLICIT
