"""OIDC: an OpenID provider says who somebody is: authorization code with PKCE.

Sources: OpenID Connect Core 1.0, 3.1; Discovery 1.0; RFC 7636 (PKCE); RFC 9207 (``iss``);
RFC 9700 (best current practice). The provider's endpoints are believed only where they are at the
issuer's own host, or at a public address; nothing that a token names is ever fetched.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import orjson
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from upright.api import Secret
from upright.core.admission import Claims
from upright.engine.ports import Clock
from upright.web.fetch import Fetched, FetchError, Fetching

ALGORITHMS: Final = ("RS256", "PS256", "ES256", "EdDSA")
KEYS_LIFE_S: Final = 3600.0
KEYS_REST_S: Final = 10.0
"""So long after the keys were read, an unknown one does not make the hub read them again."""


class SignInError(Exception):
    """The provider did not say who this is; the sentence says what was wrong."""

    code = "sign_in.refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """What this hub is to the provider. ``returns_to`` is its redirect address, whole."""

    issuer: str
    client_id: str
    secret: Secret | None
    returns_to: str
    skew_s: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """The secrets of one visit: they are made fresh, and come back or are proved by its return."""

    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Where the provider is asked what."""

    authorize: str
    token: str
    keys: str
    userinfo: str


class Provider:
    """One configured provider; what it says of itself is read when it is first needed."""

    def __init__(self, client: Client, clock: Clock, fetching: Fetching) -> None:
        self._client = client
        self._clock = clock
        self._fetching = fetching
        self._endpoints: Endpoints | None = None
        self._keys: KeySet | None = None
        self._keys_at = 0.0

    @property
    def issuer(self) -> str:
        """The provider's own name."""
        return self._client.issuer

    async def authorize_url(self, visit: Visit) -> str:
        """Return where a browser is sent.

        Raises:
            SignInError: the provider can't be reached, or does not say what it must.
        """
        challenge = hashlib.sha256(visit.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": self._client.returns_to,
            "scope": "openid email profile",
            "state": visit.state,
            "nonce": visit.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        where = (await self._where()).authorize
        return f"{where}{'&' if urlsplit(where).query else '?'}{urlencode(asked)}"

    async def claims(self, query: Mapping[str, str], *, nonce: str, verifier: str) -> Claims:
        """Return who came back; *query* is what the browser brought, its state checked already.

        Raises:
            SignInError: the provider refused, or what it says does not hold.
        """
        if said := query.get("iss", ""):
            _demand(said == self.issuer, "another issuer has answered")
        if error := query.get("error", ""):
            problem = f"the provider refused: {error[:100]}"
            raise SignInError(problem)
        where = await self._where()
        form = {
            "grant_type": "authorization_code",
            "code": query.get("code", ""),
            "redirect_uri": self._client.returns_to,
            "client_id": self._client.client_id,
            "code_verifier": verifier,
        }
        if self._client.secret is not None:
            form["client_secret"] = self._client.secret.reveal()
        answer = await self._ask(where.token, form=form)
        token, access = answer.get("id_token"), answer.get("access_token")
        if not isinstance(token, str):
            raise SignInError("the provider sent no ID token")
        claims = await self._checked(token, nonce)
        if "email" not in claims and where.userinfo and isinstance(access, str):
            more = await self._ask(where.userinfo, bearer=access)
            _demand(more.get("sub") == claims["sub"], "the userinfo is somebody else's")
            claims = {**more, **claims}
        return _claims(self.issuer, claims)

    async def _checked(self, token: str, nonce: str) -> Mapping[str, Any]:
        """Check an ID token (Core, 3.1.3.7)."""
        registry = jwt.JWTClaimsRegistry(
            now=int(self._clock.now().timestamp()),
            leeway=self._client.skew_s,
            iss={"essential": True, "value": self.issuer},
            sub={"essential": True},
            aud={"essential": True, "value": self._client.client_id},
            exp={"essential": True},
            iat={"essential": True},
        )
        claims = await self._read(token)
        try:
            registry.validate(claims)
        except (JoseError, ValueError) as error:
            raise _invalid(error) from error
        said = str(claims.get("nonce", ""))
        _demand(hmac.compare_digest(said.encode(), nonce.encode()), "the nonce is another one")
        party = claims.get("azp", self._client.client_id)
        _demand(party == self._client.client_id, "the ID token was made for another client")
        _demand(claims["sub"], "the subject is empty")
        return claims

    async def _read(self, token: str) -> dict[str, Any]:
        """Read a token that a key of the provider's has signed.

        One that the known keys have not signed makes the hub read the keys again: they change.
        """
        try:
            return jwt.decode(token, await self._keyset(fresh=False), algorithms=ALGORITHMS).claims
        except (JoseError, ValueError):
            keys = await self._keyset(fresh=True)
        try:
            return jwt.decode(token, keys, algorithms=ALGORITHMS).claims
        except (JoseError, ValueError) as error:
            raise _invalid(error) from error

    async def _keyset(self, *, fresh: bool) -> KeySet:
        age_s = self._clock.monotonic() - self._keys_at
        if self._keys is None or age_s > KEYS_LIFE_S or (fresh and age_s > KEYS_REST_S):
            found = await self._ask((await self._where()).keys)
            try:
                self._keys = KeySet.import_key_set({"keys": _usable(found.get("keys"))})
            except (JoseError, ValueError) as error:
                raise SignInError("the provider's keys can't be read") from error
            self._keys_at = self._clock.monotonic()
        return self._keys

    async def _where(self) -> Endpoints:
        if self._endpoints is None:
            found = await self._ask(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            _demand(found.get("issuer") == self.issuer, "the provider calls itself otherwise")
            self._endpoints = Endpoints(
                authorize=_address(found, "authorization_endpoint"),
                token=_address(found, "token_endpoint"),
                keys=_address(found, "jwks_uri"),
                userinfo=str(found.get("userinfo_endpoint", "")),
            )
        return self._endpoints

    async def _ask(
        self, url: str, *, form: Mapping[str, str] | None = None, bearer: str = ""
    ) -> Mapping[str, Any]:
        try:
            answer: Fetched = await self._fetching.fetch(url, form=form, bearer=bearer)
        except FetchError as error:
            problem = f"the provider does not answer: {error}"
            raise SignInError(problem) from error
        try:
            found = orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise SignInError("the provider did not answer with JSON") from error
        _demand(isinstance(found, dict), "the provider did not answer with an object")
        if answer.status != 200:
            problem = f"the provider answered {answer.status}: {str(found.get('error', ''))[:100]}"
            raise SignInError(problem)
        return dict(found)


def _invalid(error: Exception) -> SignInError:
    return SignInError(f"the provider's ID token does not hold: {type(error).__name__}")


def _usable(keys: object) -> list[dict[str, str | list[str]]]:
    """Keep those keys that sign; one of a kind that nobody here knows must not spoil the rest."""
    kinds = {"RSA", "EC", "OKP"}
    found = keys if isinstance(keys, list) else []
    return [
        key
        for key in found
        if isinstance(key, dict) and key.get("kty") in kinds and key.get("use", "sig") == "sig"
    ]


def _address(found: Mapping[str, Any], name: str) -> str:
    said = found.get(name)
    if not isinstance(said, str) or urlsplit(said).scheme not in {"http", "https"}:
        problem = f"the provider does not say its {name}"
        raise SignInError(problem)
    return said


def _claims(issuer: str, found: Mapping[str, Any]) -> Claims:
    email = found.get("email")
    verified = found.get("email_verified") is True and isinstance(email, str)
    name = found.get("name") or found.get("preferred_username") or ""
    return Claims(
        issuer=issuer,
        subject=str(found["sub"]),
        email=str(email) if verified else "",
        name=str(name)[:100],
    )


def _demand(holds: object, problem: str) -> None:
    if not holds:
        raise SignInError(problem)
