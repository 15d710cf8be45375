"""What an OpenID provider says is believed only as far as the specification lets it (S5)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from fixtures.forger import Forger, forging, key
from upright.core.admission import Claims
from upright.web.fetch import FetchError, Fetching
from upright.web.oidc import Client, Provider, SignInError, Visit

NOW: Final = 1_767_225_600
VISIT: Final = Visit(state="s", nonce="n", verifier="v" * 64)


class Clock:
    """A clock that a test moves."""

    passed_s = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(NOW + self.passed_s, UTC)

    def monotonic(self) -> float:
        return self.passed_s

    async def sleep(self, delay_s: float) -> None:
        raise AssertionError("nothing here sleeps")


@pytest.fixture
async def forger() -> AsyncIterator[Forger]:
    async with forging() as found:
        found.claims = {
            "iss": found.issuer,
            "aud": "upright",
            "sub": "1815",
            "nonce": "n",
            "iat": NOW,
            "exp": NOW + 300,
            "email": "ada@example.org",
            "email_verified": True,
        }
        yield found


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def provider(forger: Forger, clock: Clock) -> Provider:
    client = Client(
        issuer=forger.issuer,
        client_id="upright",
        secret=None,
        returns_to="http://127.0.0.1:1/sign-in/return",
    )
    return Provider(client, clock, Fetching(base=forger.issuer))


async def claims(provider: Provider, **query: str) -> Claims:
    return await provider.claims({"code": "c", **query}, nonce="n", verifier=VISIT.verifier)


async def test_a_sound_token_says_who_it_is(forger: Forger, provider: Provider) -> None:
    found = await claims(provider, iss=forger.issuer)
    assert (found.subject, found.email) == ("1815", "ada@example.org")


async def test_a_browser_is_sent_with_a_challenge_and_comes_back_with_its_proof(
    forger: Forger, provider: Provider
) -> None:
    where = await provider.authorize_url(VISIT)
    asked = {name: value[0] for name, value in parse_qs(urlsplit(where).query).items()}
    digest = hashlib.sha256(VISIT.verifier.encode()).digest()
    assert asked["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert (asked["code_challenge_method"], asked["response_type"]) == ("S256", "code")
    assert (asked["state"], asked["nonce"]) == ("s", "n")
    assert VISIT.verifier not in where
    await claims(provider)
    sent = dict(forger.asked)["/token"]
    assert (sent["code_verifier"], sent["code"]) == (VISIT.verifier, "c")


@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "https://evil.example"},
        {"aud": "another"},
        {"aud": ["another", "third"]},
        {"nonce": "replayed"},
        {"nonce": None},
        {"exp": NOW - 61},
        {"iat": NOW + 61},
        {"nbf": NOW + 61},
        {"azp": "another"},
        {"sub": ""},
        {"sub": None},
        {"exp": None},
        {"aud": None},
        {"iss": None},
    ],
)
async def test_a_token_that_was_not_made_for_this_visit_is_refused(
    forger: Forger, provider: Provider, wrong: dict[str, Any]
) -> None:
    changed = {**forger.claims, **wrong}
    forger.claims = {name: value for name, value in changed.items() if value is not None}
    with pytest.raises(SignInError):
        await claims(provider)


@pytest.mark.parametrize("wrong", [{"exp": NOW - 59}, {"iat": NOW + 59}])
async def test_clocks_may_differ_a_little(
    forger: Forger, provider: Provider, wrong: dict[str, Any]
) -> None:
    forger.claims |= wrong
    assert (await claims(provider)).subject == "1815"


@pytest.mark.parametrize("how", ["unsigned", "another key", "public key as secret"])
async def test_a_forged_token_is_refused(forger: Forger, provider: Provider, how: str) -> None:
    forger.forging = how
    with pytest.raises(SignInError, match="does not hold"):
        await claims(provider)


async def test_new_keys_are_read_when_a_token_needs_them_but_not_at_every_forgery(
    forger: Forger, provider: Provider, clock: Clock
) -> None:
    await claims(provider)
    forger.keys.insert(0, key("two"))
    clock.passed_s = 11
    assert (await claims(provider)).subject == "1815"
    forger.signer = key("three")
    for _ in range(3):
        with pytest.raises(SignInError):
            await claims(provider)
    assert [path for path, _ in forger.asked].count("/keys") == 2


@pytest.mark.parametrize("verified", [False, None, "true"])
async def test_an_address_counts_only_when_it_was_verified(
    forger: Forger, provider: Provider, verified: object
) -> None:
    forger.claims["email_verified"] = verified
    assert (await claims(provider)).email == ""


async def test_a_refusal_and_another_issuers_answer_are_told(
    forger: Forger, provider: Provider
) -> None:
    with pytest.raises(SignInError, match="access_denied"):
        await claims(provider, error="access_denied")
    with pytest.raises(SignInError, match="another issuer"):
        await claims(provider, iss="https://evil.example")
    assert forger.asked == []


async def test_a_provider_that_calls_itself_otherwise_is_not_believed(
    forger: Forger, provider: Provider
) -> None:
    forger.discovery = {"issuer": "https://evil.example"}
    with pytest.raises(SignInError, match="calls itself otherwise"):
        await provider.authorize_url(VISIT)


async def test_userinfo_of_somebody_else_is_refused(forger: Forger, provider: Provider) -> None:
    del forger.claims["email"]
    forger.discovery = {"userinfo_endpoint": f"{forger.issuer}/keys"}
    with pytest.raises(SignInError, match="somebody else"):
        await claims(provider)


@pytest.mark.parametrize(
    "elsewhere",
    [
        "http://127.0.0.1:9/keys",
        "https://127.0.0.1/keys",
        "https://169.254.169.254/latest",
        "https://[::1]/keys",
        "https://10.0.0.1/keys",
        "http://example.org/keys",
        "https://localhost/keys",
    ],
)
async def test_a_provider_does_not_send_the_hub_to_private_addresses(
    forger: Forger, provider: Provider, elsewhere: str
) -> None:
    forger.discovery = {"jwks_uri": elsewhere}
    with pytest.raises(SignInError, match=r"private|without https"):
        await claims(provider)


async def test_an_answer_has_a_cap(forger: Forger) -> None:
    with pytest.raises(FetchError, match="more than 10 bytes"):
        await Fetching(base=forger.issuer, max_bytes=10).fetch(f"{forger.issuer}/keys")


@pytest.mark.parametrize("missing", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
async def test_what_a_provider_must_say_and_does_not_is_named(
    forger: Forger, provider: Provider, missing: str
) -> None:
    forger.discovery = {missing: None}
    with pytest.raises(SignInError, match=missing):
        await provider.authorize_url(VISIT)
