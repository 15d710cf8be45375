from __future__ import annotations

import pytest

from upright.settings.auth import AuthSection


@pytest.mark.parametrize(
    "issuer",
    ["", "https://id.example.org", "https://id.example.org/realms/a", "http://localhost:1"],
)
def test_an_issuer_is_an_https_address_or_on_this_machine(issuer: str) -> None:
    assert AuthSection(issuer=issuer, client_id="upright").issuer == issuer


HTTPS = "https://id.example.org"


@pytest.mark.parametrize(
    ("issuer", "client_id", "said"),
    [
        ("http://id.example.org", "u", "https"),
        ("id.example.org", "u", "https"),
        ("https://", "u", "https"),
        ("https://id.example.org/?a=b", "u", "https"),
        (HTTPS, "", "client_id is missing"),
    ],
)
def test_an_issuer_that_anybody_could_play_is_refused(
    issuer: str, client_id: str, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        AuthSection(issuer=issuer, client_id=client_id)


@pytest.mark.parametrize("entry", ["ada", "example.org", ""])
def test_an_entry_that_names_nobody_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="name an address"):
        AuthSection(admins=frozenset({entry}))
    with pytest.raises(ValueError, match="name an address"):
        AuthSection(runners=frozenset({entry}))


def test_a_proxy_is_named_by_its_address() -> None:
    with pytest.raises(ValueError, match="addresses such as"):
        AuthSection(trusted_proxies=frozenset({"proxy.example.org"}))


def test_times_and_counts_are_above_0() -> None:
    with pytest.raises(ValueError, match="idle_s must be above 0"):
        AuthSection(idle_s=0)
    with pytest.raises(ValueError, match="token_days must be above 0"):
        AuthSection(token_days=0)
    with pytest.raises(ValueError, match="between 0 and 300"):
        AuthSection(clock_skew_s=301)


def test_the_lists_become_who_is_admitted() -> None:
    section = AuthSection(viewers=frozenset({"@example.org"}), runners=frozenset({"sub:1"}))
    assert section.admission().viewers == {"@example.org"}
    assert section.admission().runners == {"sub:1"}
    assert section.admission().admins == frozenset()
