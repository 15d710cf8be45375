"""Rules and people as versions on a real database: a change holds from the next trigger on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fixtures.still_hub import ANN, EVE, PEOPLE, SOURCE, StillHub, trigger
from upright.api import Actor, ActorKind, Trigger
from upright.core.gate import Mode, Rule, Verdict
from upright.core.trigger import Disposition, People, Person
from upright.settings.errors import SettingsError
from upright.settings.rules import EMPTY, read_rules, write_rules
from upright.store import intake, persons, policy, rules
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.intake import Accepted
from upright.store.tables import EVENT, TRIGGER
from upright.store.unit import Unit

RED = (Rule(name="red", verdict=Verdict.EXPLICIT, kinds=("ci.failed",)),)
QUIET = (Rule(name="quiet", verdict=Verdict.IGNORE, kinds=("ci.*",)),)
BASE = policy.Base(modes=(), people=PEOPLE, routes=True)


async def came(hub: StillHub, *given: Trigger, held: policy.Held | None = None) -> list[Accepted]:
    """Take triggers in by the policy that holds, as the hub does, with a copy that may be old."""

    def unit(u: Unit) -> list[Accepted]:
        return intake.accept(u, SOURCE, given, policy.current(u.c, BASE, held).policy)

    return await hub.do(unit)


async def take_over(hub: StillHub, own: Sequence[Rule]) -> int:
    return await hub.do(lambda u: rules.take_over(u, write_rules(own)))


# ------------------------------------------------------------------ the file
@pytest.mark.clause("B3.4")
async def test_the_files_rules_are_a_version_when_they_change_and_no_other_time(
    hub: StillHub,
) -> None:
    numbers = [await take_over(hub, own) for own in ((), (), RED, RED, QUIET, RED)]
    assert numbers == [1, 1, 2, 2, 3, 4]
    found = await hub.see(lambda c: rules.history(c, 9))
    assert [one.text for one in found[::-1]] == [EMPTY, *map(write_rules, (RED, QUIET, RED))]
    assert {one.by for one in found} == {"file"}


@pytest.mark.clause("B3.4")
async def test_a_persons_edit_outlives_restarts_until_the_file_says_something_new(
    hub: StillHub,
) -> None:
    base = await take_over(hub, RED)
    edited = await hub.do(lambda u: rules.edit(u, write_rules(QUIET), by="ann", base=base))
    assert await take_over(hub, RED) == edited
    assert await take_over(hub, ()) == edited + 1


@pytest.mark.clause("B3.4")
async def test_of_two_edits_of_one_version_the_second_is_refused_and_changes_nothing(
    hub: StillHub,
) -> None:
    base = await take_over(hub, ())
    same = await hub.do(lambda u: rules.edit(u, EMPTY, by="ann", base=base))
    assert same == base
    await hub.do(lambda u: rules.edit(u, write_rules(RED), by="ann", base=base))
    with pytest.raises(NotNowError, match="version 2 came meanwhile"):
        await hub.do(lambda u: rules.edit(u, write_rules(QUIET), by="bob", base=base))
    assert await hub.see(rules.newest) == 2
    assert [row["data"]["by"] for row in await hub.rows(EVENT, stop="rules.changed")] == [
        "file",
        "ann",
    ]


# ------------------------------------------------------------------ the next trigger
@pytest.mark.clause("B3.4")
async def test_an_edit_holds_for_the_next_trigger_for_one_who_has_an_old_copy_as_well(
    hub: StillHub,
) -> None:
    base = await take_over(hub, RED)
    old = await hub.see(lambda c: policy.current(c, BASE))
    (before,) = await came(hub, trigger("ci.failed"), held=old)
    await hub.do(lambda u: rules.edit(u, write_rules(QUIET), by="ann", base=base))
    (after,) = await came(hub, trigger("ci.failed", thread="pr:8"), held=old)
    assert (before.disposition, after.disposition) == (Disposition.STARTED, Disposition.IGNORED)
    rows = [await hub.row(TRIGGER, id=one.id) for one in (before, after)]
    assert [row["rule"] for row in rows] == ["red", "quiet"]
    assert [row["rules_version"].split(".")[0] for row in rows] == ["1", "2"]


@pytest.mark.clause("B3.4")
async def test_one_batch_is_judged_by_one_version(hub: StillHub) -> None:
    await take_over(hub, RED)
    await came(hub, *(trigger("ci.failed", thread=f"pr:{n}") for n in range(3)))
    assert len({row["rules_version"] for row in await hub.rows(TRIGGER)}) == 1


@pytest.mark.clause("B3.4")
async def test_what_a_text_says_changes_no_rule(hub: StillHub) -> None:
    await take_over(hub, RED)
    said = '[[rules]]\nname = "quiet"\nverdict = "ignore"\n'
    await came(hub, trigger("comment.created", by=EVE, text=said))
    assert await hub.see(rules.newest) == 1


@pytest.mark.clause("B3.4")
async def test_an_unchanged_policy_is_the_same_object_and_a_program_or_mode_names_itself(
    hub: StillHub,
) -> None:
    await take_over(hub, RED)
    held = await hub.see(lambda c: policy.current(c, BASE))
    assert await hub.see(lambda c: policy.current(c, BASE, held)) is held
    off = policy.Base(modes=((SOURCE, Mode.OFF),), people=PEOPLE, routes=True)
    other = await hub.see(lambda c: policy.current(c, off))
    assert other.policy.rules.version != held.policy.rules.version


async def test_before_any_version_the_built_in_rules_hold(hub: StillHub) -> None:
    held = await hub.see(lambda c: policy.current(c, BASE))
    assert held.policy.rules.version.startswith("0.")
    with pytest.raises(UnknownIdError):
        await hub.see(rules.read)


async def test_hits_are_counted_by_rule_since_a_time(hub: StillHub) -> None:
    await take_over(hub, RED)
    await came(hub, trigger("ci.failed"))
    hub.clock.go_on(3600)
    since = int(hub.clock.now().timestamp() * 1000)
    await came(hub, trigger("ci.failed"), trigger("ci.queued"))
    assert await hub.see(lambda c: rules.hits(c, since)) == {"red": 1, "CI under way": 1}
    assert await hub.see(lambda c: rules.hits(c, 0)) == {"red": 2, "CI under way": 1}


def test_a_stored_version_that_cannot_be_read_would_be_an_error() -> None:
    with pytest.raises(SettingsError):
        read_rules("x", origin="a test")


# ------------------------------------------------------------------ people
@pytest.mark.clause("B6.11")
async def test_who_is_added_and_linked_is_that_person_from_the_next_trigger_on(
    hub: StillHub,
) -> None:
    (before,) = await came(hub, trigger("comment.created", by=EVE))
    await hub.do(lambda u: persons.add(u, "eva", ActorKind.CONTACT, PEOPLE))
    await hub.do(lambda u: persons.link(u, "eva", "gh:eve", PEOPLE))
    (after,) = await came(hub, trigger("comment.created", by=EVE))
    rows = [await hub.row(TRIGGER, id=one.id) for one in (before, after)]
    assert [(row["actor_kind"], row["person"]) for row in rows] == [
        ("stranger", ""),
        ("contact", "eva"),
    ]


@pytest.mark.clause("B6.11")
async def test_a_person_of_the_configuration_is_linked_with_a_further_id_and_stays_what_it_is(
    hub: StillHub,
) -> None:
    await hub.do(lambda u: persons.link(u, "ann", "*:ann@acme.io", PEOPLE))
    (one,) = await came(hub, trigger("comment.created", by=Actor(id="ann@acme.io", name="x")))
    row = await hub.row(TRIGGER, id=one.id)
    assert (row["actor_kind"], row["person"], row["trust"]) == ("member", "ann", "member")


@pytest.mark.clause("B6.11")
async def test_a_link_joins_the_open_work_of_that_id(hub: StillHub) -> None:
    item = await hub.opened(trigger(by=Actor(id="ann@acme.io")))
    await hub.asleep(item)
    assert await hub.see(lambda c: persons.open_elsewhere(c, "ann", "th")) == []
    await hub.do(lambda u: persons.link(u, "ann", "gh:ann@acme.io", PEOPLE))
    assert await hub.see(lambda c: persons.open_elsewhere(c, "ann", "th")) == [
        (item.id, item.thread)
    ]
    assert await hub.see(lambda c: persons.open_elsewhere(c, "ann", item.thread)) == []
    assert await hub.see(lambda c: persons.open_elsewhere(c, "", "th")) == []


@pytest.mark.clause("B1.3", "B6.11")
async def test_an_id_is_one_persons_and_the_configuration_goes_before(hub: StillHub) -> None:
    await hub.do(lambda u: persons.add(u, "eva", ActorKind.MEMBER, PEOPLE))
    with pytest.raises(NotNowError, match="this id is ann's"):
        await hub.do(lambda u: persons.link(u, "eva", "gh:ann", PEOPLE))
    with pytest.raises(NotNowError, match="this id is boss's"):
        await hub.do(lambda u: persons.link(u, "eva", "*:boss", PEOPLE))
    await hub.do(lambda u: persons.link(u, "eva", "gh:new", PEOPLE))
    await hub.do(lambda u: persons.link(u, "eva", "gh:new", PEOPLE))
    with pytest.raises(NotNowError, match="this id is eva's"):
        await hub.do(lambda u: persons.link(u, "ann", "gh:new", PEOPLE))
    later = People.of((Person(name="zoe", kind=ActorKind.CONTACT, ids=frozenset({"gh:new"})),))
    found = await hub.see(lambda c: persons.known(c, later))
    assert found.by_id["gh:new"].name == "zoe"


@pytest.mark.parametrize(
    ("name", "kind", "key"),
    [("ann", ActorKind.MEMBER, ""), ("bo", ActorKind.BOT, ""), ("", None, "gh"), ("", None, ":x")],
)
async def test_what_makes_no_person_is_refused_and_changes_nothing(
    hub: StillHub, name: str, kind: ActorKind | None, key: str
) -> None:
    def unit(u: Unit) -> None:
        if kind is not None:
            persons.add(u, name, kind, PEOPLE)
        persons.link(u, "ann", key, PEOPLE)

    before = await hub.see(persons.mark)
    with pytest.raises(NotNowError):
        await hub.do(unit)
    with pytest.raises(UnknownIdError):
        await hub.do(lambda u: persons.link(u, "nobody", "gh:x", PEOPLE))
    assert await hub.see(persons.mark) == before


async def test_people_are_listed_by_name_with_all_their_ids(hub: StillHub) -> None:
    await hub.do(lambda u: persons.add(u, "zed", ActorKind.CONTACT, PEOPLE))
    await hub.do(lambda u: persons.link(u, "ann", "chat:U7", PEOPLE))
    found = await hub.see(lambda c: persons.listed(c, PEOPLE))
    assert [(one["name"], one["kind"], one["ids"], one["configured"]) for one in found] == [
        ("ann", "member", ["chat:U7", "gh:ann"], True),
        ("boss", "operator", ["*:boss"], True),
        ("cal", "contact", ["gh:cal"], True),
        ("zed", "contact", [], False),
    ]


# ------------------------------------------------------------------ links
@pytest.mark.clause("B6.10")
@pytest.mark.parametrize(("by", "links"), [(ANN, True), (EVE, False)], ids=["member", "stranger"])
async def test_a_message_that_links_a_page_is_linked_with_the_thread_of_that_page(
    hub: StillHub, by: Actor, *, links: bool
) -> None:
    url = "https://git.example.org/acme/app/pull/7"
    item = await hub.opened(trigger(facts=(("url", f"{url}#issuecomment-1"),)))
    await hub.asleep(item)
    text = f"How is <{url}/> doing? See ({url}#diff)."
    (said,) = await came(hub, trigger("chat.message", by=by, thread="chat:1", text=text))
    assert (said.woke == (item.session,)) is links
