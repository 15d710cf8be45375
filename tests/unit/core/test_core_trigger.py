from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.api import Actor, ActorKind, Channel, Content, Context, Trigger
from upright.core.mandate import Trust
from upright.core.trigger import Disposition, Origin, People, Person, origin

ANNA: Final = Person(
    name="anna", kind=ActorKind.MEMBER, ids=frozenset({"github:1001", "chat:U7", "*:anna@acme.io"})
)
OLGA: Final = Person(name="olga", kind=ActorKind.OPERATOR, ids=frozenset({"github:1"}))
CARL: Final = Person(name="carl", kind=ActorKind.CONTACT, ids=frozenset({"github:2002"}))
PEOPLE: Final = People.of(
    (ANNA, OLGA, CARL),
    bots=frozenset({"github:ci[bot]", "*:anybot"}),
    trusted_bots=frozenset({"github:our-ci", "*:ourbot"}),
)

CLAIMS: Final = frozenset(ActorKind) - {ActorKind.SELF, ActorKind.BOT}


def trigger(actor_id: str, kind: ActorKind = ActorKind.STRANGER, text: str = "hi") -> Trigger:
    return Trigger(
        kind="comment.created",
        channel=Channel.GITHUB,
        actor=Actor(id=actor_id, name="shown", kind=kind),
        content=Content(text=text),
        context=Context(thread="github:acme/app#7"),
        dedupe=("d1",),
    )


def who(actor_id: str, kind: ActorKind = ActorKind.STRANGER, source: str = "github") -> Origin:
    return origin(trigger(actor_id, kind), source, PEOPLE)


@pytest.mark.clause("B1.3")
@pytest.mark.parametrize(
    ("actor_id", "kind", "trust"),
    [
        ("1001", ActorKind.MEMBER, Trust.MEMBER),
        ("1", ActorKind.OPERATOR, Trust.OPERATOR),
        ("2002", ActorKind.CONTACT, Trust.CONTACT),
        ("9", ActorKind.STRANGER, Trust.STRANGER),
    ],
    ids=["member", "operator", "contact", "unknown"],
)
def test_the_configuration_says_who_an_actor_is(
    actor_id: str, kind: ActorKind, trust: Trust
) -> None:
    found = who(actor_id)
    assert (found.actor.kind, found.trust, found.listed) == (kind, trust, False)


@pytest.mark.clause("B1.3")
@pytest.mark.parametrize("claimed", sorted(CLAIMS))
@pytest.mark.parametrize(
    ("actor_id", "kind"),
    [("9", "stranger"), ("2002", "contact"), ("1001", "member"), ("1", "operator")],
)
def test_a_connector_promotes_nobody_whatever_it_claims(
    claimed: ActorKind, actor_id: str, kind: str
) -> None:
    assert who(actor_id, claimed).actor.kind == kind


@pytest.mark.clause("B6.11")
def test_one_person_is_known_by_an_id_of_each_source() -> None:
    assert PEOPLE.person("github", "1001") is ANNA
    assert PEOPLE.person("chat", "U7") is ANNA
    assert PEOPLE.person("mail", "anna@acme.io") is ANNA


@pytest.mark.clause("B6.11")
def test_an_id_of_one_source_says_nothing_in_another() -> None:
    assert PEOPLE.person("chat", "1001") is None
    assert who("1001", source="chat").actor.kind is ActorKind.STRANGER


def test_an_id_of_one_source_goes_before_one_of_all() -> None:
    everywhere = Person(name="e", kind=ActorKind.CONTACT, ids=frozenset({"*:7"}))
    here = Person(name="h", kind=ActorKind.MEMBER, ids=frozenset({"chat:7"}))
    people = People.of((everywhere, here))
    assert (people.person("chat", "7"), people.person("mail", "7")) == (here, everywhere)


@pytest.mark.clause("B1.3")
@pytest.mark.parametrize(
    ("bot", "listed", "trust"),
    [
        ("ci[bot]", True, Trust.CONTACT),
        ("anybot", True, Trust.CONTACT),
        ("our-ci", True, Trust.MEMBER),
        ("ourbot", True, Trust.MEMBER),
        ("other", False, Trust.STRANGER),
    ],
)
def test_a_bot_is_trusted_as_far_as_the_configuration_lists_it(
    *, bot: str, listed: bool, trust: Trust
) -> None:
    found = who(bot, ActorKind.BOT)
    assert (found.actor.kind, found.listed, found.trust) == (ActorKind.BOT, listed, trust)


def test_a_bot_on_both_lists_is_one_of_ours() -> None:
    both = People.of((), bots=frozenset({"*:b"}), trusted_bots=frozenset({"github:b"}))
    assert both.bot_trust("github", "b") is Trust.MEMBER
    assert both.bot_trust("chat", "b") is Trust.CONTACT


def test_a_bot_with_a_members_id_stays_a_bot() -> None:
    assert who("1001", ActorKind.BOT).trust is Trust.STRANGER


@pytest.mark.parametrize("name", ["ci[bot]", "our-ci"])
def test_a_person_with_a_listed_bots_id_is_not_listed(name: str) -> None:
    assert who(name).listed is False
    assert who(name).trust is Trust.STRANGER


@pytest.mark.clause("B1.5")
def test_the_agents_own_output_stays_its_own() -> None:
    assert who("1001", ActorKind.SELF).actor.kind is ActorKind.SELF


@pytest.mark.clause("B14.2")
def test_a_connector_that_speaks_as_the_system_is_a_stranger() -> None:
    assert who("hub", ActorKind.SYSTEM).trust is Trust.STRANGER


@pytest.mark.clause("B1.3")
@given(text=st.text())
def test_no_text_changes_who_spoke(text: str) -> None:
    assert origin(trigger("9", text=text), "github", PEOPLE) == who("9")


def test_only_the_kind_of_an_actor_is_changed() -> None:
    assert who("1001").actor == Actor(id="1001", name="shown", kind=ActorKind.MEMBER)


def test_a_trigger_ends_in_one_of_six_ways() -> None:
    routed = {"ignored", "joined", "started", "woke", "held", "quarantined"}
    assert set(Disposition) == routed | {"answered"}


@pytest.mark.clause("B6.11")
@pytest.mark.parametrize(
    ("actor_id", "kind", "person"),
    [
        ("1001", ActorKind.STRANGER, "anna"),
        ("2002", ActorKind.STRANGER, "carl"),
        ("9", ActorKind.STRANGER, ""),
        ("ci[bot]", ActorKind.BOT, ""),
        ("1001", ActorKind.BOT, ""),
        ("1001", ActorKind.SELF, ""),
    ],
)
def test_a_person_is_named_by_the_map_and_never_by_the_sender(
    actor_id: str, kind: ActorKind, person: str
) -> None:
    assert who(actor_id, kind).person == person
