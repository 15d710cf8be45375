from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from fixtures.databases import connected
from fixtures.store_rows import put, session, story, turn
from upright.core.ids import PREFIXES
from upright.store.address import Address
from upright.store.errors import AmbiguousIdError, UnknownIdError
from upright.store.resolve import MAX_CANDIDATES, Resolved, resolve


@pytest.fixture
def c(address: Address) -> Iterator[sa.Connection]:
    with connected(address) as connection:
        story(connection)
        yield connection


@pytest.mark.parametrize(
    ("prefix", "kind", "whole"),
    [
        ("tr_re", "trigger", "tr_red"),
        ("th_", "thread", "th_pr"),
        ("se_f", "session", "se_fix"),
        ("wk", "work", "wk_fix"),
        ("wt_c", "wait", "wt_ci"),
        ("jb_t", "job", "jb_test"),
        ("wa", "watch", "wa_test"),
        ("ob_f", "outbox", "ob_fixed"),
        ("rq_b", "request", "rq_branch"),
        ("d", "device", "dv_box"),
        ("tu_fix", "turn", "tu_fix"),
        ("mm_r", "memory", "mm_red"),
        ("pl_red", "payload", "pl_red"),
    ],
)
def test_a_unique_prefix_is_enough(c: sa.Connection, prefix: str, kind: str, whole: str) -> None:
    assert resolve(c, prefix) == Resolved(kind=kind, id=whole)


def test_every_kind_of_id_is_known_but_the_hubs_own(c: sa.Connection) -> None:
    def known(kind: str) -> bool:
        try:
            resolve(c, f"{PREFIXES[kind]}_")
        except AmbiguousIdError:
            return True
        except UnknownIdError:
            return False
        return True

    assert {kind for kind in PREFIXES if not known(kind)} == {
        "hub",
        "account",
        "sign_in",
        "token",
    }


def test_a_whole_id_wins_over_a_longer_one_that_begins_with_it(c: sa.Connection) -> None:
    put(c, session("se_fixed"))
    assert resolve(c, "se_fix").id == "se_fix"


def test_an_ambiguous_prefix_names_candidates(c: sa.Connection) -> None:
    with pytest.raises(AmbiguousIdError, match="tr_green, tr_red, tr_star") as refused:
        resolve(c, "tr_")
    assert refused.value.candidates == ("tr_green", "tr_red", "tr_star")


def test_what_is_hidden_is_no_candidate_however_much_of_it_there_is(c: sa.Connection) -> None:
    many = [f"tu_more{n:03}" for n in range(120)]
    put(c, *(turn(name, "se_fix", n) for n, name in enumerate(many)))
    hidden = frozenset(many[:-1])
    assert resolve(c, "tu_m", hidden).id == many[-1]
    with pytest.raises(UnknownIdError):
        resolve(c, "tu_m", hidden | {many[-1]})


def test_candidates_are_few(c: sa.Connection) -> None:
    put(c, *(turn(f"tu_more{n}", "se_fix", n) for n in range(20)))
    with pytest.raises(AmbiguousIdError) as refused:
        resolve(c, "t")
    assert len(refused.value.candidates) == MAX_CANDIDATES


@pytest.mark.parametrize("prefix", ["", "tr_x", "xx_red", "tr%", "tr_red_", "%", "_", "TR_RED"])
def test_what_begins_nothing_is_a_typed_error(c: sa.Connection, prefix: str) -> None:
    with pytest.raises(UnknownIdError) as refused:
        resolve(c, prefix)
    assert refused.value.prefix == prefix
