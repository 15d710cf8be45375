from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.api import Actor, ActorKind, Context
from upright.core.gate import Judgement, Verdict
from upright.core.ids import SessionId, ThreadId
from upright.core.mandate import Trust
from upright.core.routing import (
    MAX_PAGES,
    Delivery,
    Join,
    PassThrough,
    join,
    page,
    pages,
    route,
)
from upright.core.trigger import Disposition, Origin

# Keys as a connector spells them: the pull request, its commits, its branch with the repository.
PULL: Final = "github:acme/app#7"
COMMIT: Final = "github:acme/app@aaa"
NEW_COMMIT: Final = "github:acme/app@bbb"
BRANCH: Final = "github:acme/app:acme/app:fix-7"
FORK_BRANCH: Final = "github:acme/app:mallory/app:fix-7"
ISSUE: Final = "github:acme/app#3"

T1, T2, T3 = ThreadId("th_1"), ThreadId("th_2"), ThreadId("th_3")
WORKER, SECOND, ROUTER = SessionId("se_1"), SessionId("se_2"), SessionId("se_r")
OURS: Final = {PULL: T1, COMMIT: T1, BRANCH: T1}


# ------------------------------------------------------------------ joining
@pytest.mark.clause("B6.10")
def test_a_thread_that_nobody_knows_is_new_and_learns_its_keys() -> None:
    found = join(Context(thread=PULL, joins=(COMMIT, BRANCH)), {}, Trust.STRANGER)
    assert found == Join(thread=None, learn=(PULL, COMMIT, BRANCH), links=())


@pytest.mark.clause("B6.10")
def test_a_known_thread_is_found_by_its_own_key_and_learns_what_is_new() -> None:
    found = join(Context(thread=PULL, joins=(NEW_COMMIT, BRANCH)), OURS, Trust.STRANGER)
    assert found == Join(thread=T1, learn=(NEW_COMMIT,), links=())


@pytest.mark.clause("B6.10")
def test_a_check_on_a_new_commit_of_our_branch_that_names_no_pull_request_joins_it() -> None:
    check = Context(thread=NEW_COMMIT, joins=(BRANCH,))
    assert join(check, OURS, Trust.STRANGER) == Join(thread=T1, learn=(NEW_COMMIT,), links=())


@pytest.mark.clause("B6.10")
def test_a_check_on_the_same_branch_name_of_a_fork_stays_apart() -> None:
    check = Context(thread="github:acme/app@fork:ccc", joins=(FORK_BRANCH,))
    assert join(check, OURS, Trust.STRANGER).thread is None
    assert join(check, {**OURS, FORK_BRANCH: T2}, Trust.STRANGER).thread == T2


@pytest.mark.clause("B6.10")
def test_a_threads_own_key_goes_before_what_it_joins() -> None:
    found = join(Context(thread=ISSUE, joins=(BRANCH,)), {**OURS, ISSUE: T2}, Trust.STRANGER)
    assert (found.thread, found.links) == (T2, (T1,))


@pytest.mark.clause("B6.10")
def test_further_known_keys_are_links_once_each_and_never_the_thread_itself() -> None:
    known = {PULL: T1, COMMIT: T2, BRANCH: T3, ISSUE: T2}
    context = Context(thread=PULL, joins=(COMMIT, BRANCH, ISSUE), related=(PULL, ISSUE))
    assert join(context, known, Trust.OPERATOR) == Join(thread=T1, learn=(), links=(T2, T3))


@pytest.mark.clause("B6.10")
@pytest.mark.parametrize(
    ("trust", "links"),
    [
        (Trust.OPERATOR, (T1,)),
        (Trust.MEMBER, (T1,)),
        (Trust.CONTACT, ()),
        (Trust.STRANGER, ()),
    ],
)
def test_a_mention_links_for_one_of_us_and_opens_no_door_for_others(
    trust: Trust, links: tuple[ThreadId, ...]
) -> None:
    found = join(Context(thread="chat:room/1", related=(PULL,)), OURS, trust)
    assert found == Join(thread=None, learn=("chat:room/1",), links=links)


@pytest.mark.clause("B6.10")
def test_a_mention_of_what_nobody_knows_links_nothing_and_is_not_learnt() -> None:
    found = join(Context(thread=PULL, related=(ISSUE,)), OURS, Trust.OPERATOR)
    assert found == Join(thread=T1, learn=(), links=())


def test_empty_and_repeated_keys_are_learnt_never_and_once() -> None:
    found = join(Context(thread=PULL, joins=("", PULL, BRANCH, BRANCH)), {}, Trust.STRANGER)
    assert found.learn == (PULL, BRANCH)


KEYS: Final = st.sampled_from([PULL, COMMIT, BRANCH, ISSUE])


@pytest.mark.clause("B6.10")
@given(
    joins=st.lists(KEYS),
    related=st.lists(KEYS),
    known=st.dictionaries(KEYS, st.sampled_from([T1, T2, T3])),
    trust=st.sampled_from(Trust),
)
def test_every_key_is_either_known_or_learnt_and_links_are_other_threads(
    joins: list[str], related: list[str], known: dict[str, ThreadId], trust: Trust
) -> None:
    context = Context(thread=PULL, joins=tuple(joins), related=tuple(related))
    found = join(context, known, trust)
    assert {PULL, *joins} - set(known) == set(found.learn)
    assert found.thread not in found.links
    assert len(set(found.links)) == len(found.links)
    if trust < Trust.MEMBER:
        assert set(found.links) <= {known[key] for key in (PULL, *joins) if key in known}


# ------------------------------------------------------------------ routing
def judged(verdict: Verdict, *, by_mode: bool = False) -> Judgement:
    return Judgement(
        verdict=verdict, rule="a rule", reason="a reason", version="v1", by_mode=by_mode
    )


def by(kind: ActorKind = ActorKind.STRANGER) -> Origin:
    return Origin(actor=Actor(id="1", kind=kind), trust=Trust.STRANGER, listed=False)


@pytest.mark.clause("B6.1", "B3.3")
@pytest.mark.parametrize("verdict", [Verdict.EXPLICIT, Verdict.CANDIDATE])
def test_what_comes_on_a_followed_thread_wakes_all_its_followers(verdict: Verdict) -> None:
    routed = route(judged(verdict), by(), (WORKER, SECOND), ROUTER)
    assert routed.disposition is Disposition.WOKE
    assert routed.deliveries == (
        Delivery(session=WORKER, wake=True),
        Delivery(session=SECOND, wake=True),
    )
    assert routed.reason == "passed through to 2 that follow the thread"


@pytest.mark.clause("B3.3")
def test_an_ignore_rule_makes_it_context_without_a_wake() -> None:
    routed = route(judged(Verdict.IGNORE), by(), (WORKER,), ROUTER)
    assert routed.disposition is Disposition.JOINED
    assert routed.deliveries == (Delivery(session=WORKER, wake=False),)
    assert routed.reason == "context without a wake: a rule"


@pytest.mark.clause("B3.3")
def test_a_source_of_explicit_triggers_only_still_wakes_who_follows() -> None:
    routed = route(judged(Verdict.IGNORE, by_mode=True), by(), (WORKER,), ROUTER)
    assert routed.disposition is Disposition.WOKE
    assert routed.deliveries == (Delivery(session=WORKER, wake=True),)


@pytest.mark.clause("B6.7", "B1.5")
@pytest.mark.parametrize("verdict", list(Verdict))
def test_our_own_output_is_context_for_followers_and_wakes_nobody(verdict: Verdict) -> None:
    routed = route(judged(verdict), by(ActorKind.SELF), (WORKER, SECOND), ROUTER)
    assert routed.disposition is Disposition.JOINED
    assert [delivery.wake for delivery in routed.deliveries] == [False, False]


@pytest.mark.clause("B1.5")
@pytest.mark.parametrize("verdict", list(Verdict))
def test_our_own_output_starts_nothing_even_when_a_rule_calls_it_explicit(
    verdict: Verdict,
) -> None:
    routed = route(judged(verdict), by(ActorKind.SELF), (), ROUTER)
    assert (routed.disposition, routed.deliveries) == (Disposition.IGNORED, ())


@pytest.mark.clause("B5.3")
def test_an_explicit_trigger_that_nobody_follows_wakes_the_router() -> None:
    routed = route(judged(Verdict.EXPLICIT), by(), (), ROUTER)
    assert routed.disposition is Disposition.STARTED
    assert routed.deliveries == (Delivery(session=ROUTER, wake=True),)


@pytest.mark.clause("B17.5")
def test_without_a_model_an_explicit_trigger_is_held_for_the_operator() -> None:
    routed = route(judged(Verdict.EXPLICIT), by(), (), None)
    assert (routed.disposition, routed.deliveries) == (Disposition.HELD, ())
    assert routed.reason == "no model is configured: held for the operator"


@pytest.mark.clause("B4.2")
@pytest.mark.parametrize("router", [ROUTER, None])
def test_a_candidate_without_a_policy_is_held_for_the_operator(router: SessionId | None) -> None:
    routed = route(judged(Verdict.CANDIDATE), by(), (), router)
    assert (routed.disposition, routed.deliveries) == (Disposition.HELD, ())
    assert routed.reason == "a candidate that no policy accepts: held for the operator"


@pytest.mark.clause("B3.1")
@pytest.mark.parametrize("by_mode", [False, True])
def test_an_ignored_trigger_that_nobody_follows_is_kept_with_its_reason(*, by_mode: bool) -> None:
    routed = route(judged(Verdict.IGNORE, by_mode=by_mode), by(), (), ROUTER)
    assert (routed.disposition, routed.deliveries) == (Disposition.IGNORED, ())
    assert routed.reason == "a reason"


@pytest.mark.clause("B6.1")
@given(
    verdict=st.sampled_from(Verdict),
    by_mode=st.booleans(),
    kind=st.sampled_from(ActorKind),
    subscribers=st.lists(st.sampled_from([WORKER, SECOND]), unique=True),
    router=st.sampled_from([ROUTER, None]),
)
def test_a_trigger_has_one_disposition_and_a_reason_and_the_router_sees_no_followed_thread(
    *,
    verdict: Verdict,
    by_mode: bool,
    kind: ActorKind,
    subscribers: list[SessionId],
    router: SessionId | None,
) -> None:
    routed = route(judged(verdict, by_mode=by_mode), by(kind), tuple(subscribers), router)
    woken = [delivery for delivery in routed.deliveries if delivery.wake]
    assert routed.reason
    if subscribers:
        assert [delivery.session for delivery in routed.deliveries] == subscribers
        assert routed.disposition in {Disposition.WOKE, Disposition.JOINED}
    assert bool(woken) is (routed.disposition in {Disposition.WOKE, Disposition.STARTED})


# ------------------------------------------------------------------ the setting
@pytest.mark.clause("B6.9")
@pytest.mark.parametrize(
    ("passes", "kind", "to"),
    [
        (PassThrough.ALL, ActorKind.BOT, (WORKER,)),
        (PassThrough.ALL, ActorKind.MEMBER, (WORKER,)),
        (PassThrough.PEOPLE, ActorKind.BOT, (WORKER, ROUTER)),
        (PassThrough.PEOPLE, ActorKind.STRANGER, (WORKER,)),
        (PassThrough.NONE, ActorKind.BOT, (ROUTER,)),
        (PassThrough.NONE, ActorKind.OPERATOR, (ROUTER,)),
    ],
)
def test_the_setting_says_what_followers_get_without_the_router(
    passes: PassThrough, kind: ActorKind, to: tuple[SessionId, ...]
) -> None:
    way = route(judged(Verdict.CANDIDATE), by(kind), (WORKER,), ROUTER, passes=passes)
    assert tuple(one.session for one in way.deliveries) == to
    assert all(one.wake for one in way.deliveries)
    started = passes is PassThrough.NONE
    assert way.disposition is (Disposition.STARTED if started else Disposition.WOKE)


@pytest.mark.clause("B6.9", "B3.3")
@pytest.mark.parametrize("passes", list(PassThrough))
@pytest.mark.parametrize(
    ("verdict", "kind"),
    [(Verdict.IGNORE, ActorKind.BOT), (Verdict.EXPLICIT, ActorKind.SELF)],
)
def test_what_wakes_nobody_stays_context_of_the_followers_under_each_setting(
    passes: PassThrough, verdict: Verdict, kind: ActorKind
) -> None:
    way = route(judged(verdict), by(kind), (WORKER,), ROUTER, passes=passes)
    assert way.deliveries == (Delivery(session=WORKER, wake=False),)
    assert way.disposition is Disposition.JOINED


@pytest.mark.clause("B17.5", "B6.9")
@pytest.mark.parametrize("passes", list(PassThrough))
def test_without_a_router_all_is_passed_through(passes: PassThrough) -> None:
    way = route(judged(Verdict.CANDIDATE), by(ActorKind.BOT), (WORKER,), None, passes=passes)
    assert way.deliveries == (Delivery(session=WORKER, wake=True),)


# ------------------------------------------------------------------ pages
@pytest.mark.clause("B6.10")
@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://h.org/a/pull/7", "url:https://h.org/a/pull/7"),
        ("https://h.org/a/pull/7/", "url:https://h.org/a/pull/7"),
        ("https://h.org/a/pull/7#issuecomment-1", "url:https://h.org/a/pull/7"),
        ("https://h.org/a?b=1", "url:https://h.org/a?b=1"),
        ("ftp://h.org/a", ""),
        ("see https://h.org", ""),
        ("", ""),
    ],
)
def test_a_page_is_its_address_without_the_place_in_it(url: str, key: str) -> None:
    assert page(url) == key


@pytest.mark.clause("B6.10")
def test_a_text_names_the_pages_that_it_links_once_each_and_not_too_many() -> None:
    text = "See (https://h.org/1), <https://h.org/1/>, https://h.org/2. Not h.org/3."
    assert pages(text) == ("url:https://h.org/1", "url:https://h.org/2")
    assert pages("nothing") == ()
    many = " ".join(f"https://h.org/{n}" for n in range(50))
    assert len(pages(many)) == MAX_PAGES
