"""Settings of one CI source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from upright.api import SecretRef

DEFAULT_API_URL: Final = "https://gitlab.com"
MAX_BODY_BYTES: Final = 25 * 1024 * 1024
MAX_TIMEOUT_S: Final = 300.0
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class Provider(StrEnum):
    """Who sends."""

    GITLAB = "gitlab"
    JUNIT = "junit"
    BUILDBOT = "buildbot"
    JENKINS = "jenkins"
    BUILDKITE = "buildkite"
    GENERIC = "generic"


class Verify(StrEnum):
    """How a request shows that it knows the secret."""

    BEARER = "bearer"  # Authorization: Bearer SECRET
    HEADER = "header"  # the secret stands in a header of its own
    HMAC = "hmac"  # HMAC-SHA256 over the raw bytes, in hexadecimal, with or without "sha256="
    BUILDKITE = "buildkite"  # X-Buildkite-Signature, or the token in X-Buildkite-Token


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsMapping:
    """Where a run's jobs stand: a list at ``at``; in each of them, its name, verdict and log."""

    at: str = ""
    name: str = "name"
    verdict: str = "status"
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """Where each part of a run stands in a JSON payload: dotted paths.

    ``build.scm.branch``; a number takes an item of a list, ``|`` stands before a second choice. A
    part without a path is not there. ``verdict`` says how it is or how it ended; ``verdicts`` in
    the settings translates that.
    """

    id: str = ""
    check: str = ""
    verdict: str = ""
    repository: str = ""
    clone: str = ""  # the address of the repository; it is named by its path, if by nothing else
    branch: str = ""
    sha: str = ""
    number: str = ""
    attempt: str = ""
    url: str = ""
    at: str = ""
    text: str = ""
    jobs: JobsMapping = field(default_factory=JobsMapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class CiSettings:
    """Keys of ``[sources.NAME]`` with ``connector = "ci"``.

    ``secret`` is what the sender shows; ``verify`` says how (``header`` names the header) where
    the provider leaves a choice. ``code_host`` is what the keys of the repositories begin with at
    the source that tells of their pull requests, as in ``github:github.com``: a run joins the
    thread of its pull request then. ``default_branches`` join nobody.

    ``mapping`` and ``verdicts`` are for ``generic``; the other providers have their own, which
    these go before. ``repository`` and ``check`` are used where the sender names none.

    GitLab alone: ``token`` speaks to the API below ``api_url`` and is that of ``bot_login``;
    ``projects`` are full paths (``acme/app``), none: all that send.

    Raises:
        ValueError: a value that can't work, named by its key.
    """

    provider: Provider
    secret: SecretRef
    verify: Verify | None = None
    header: str = ""
    code_host: str = ""
    default_branches: tuple[str, ...] = ("main", "master")
    repository: str = ""
    check: str = ""
    mapping: Mapped = field(default_factory=Mapped)
    verdicts: Mapping[str, str] = field(default_factory=dict)
    token: SecretRef | None = None
    api_url: str = DEFAULT_API_URL
    bot_login: str = ""
    projects: tuple[str, ...] = ()
    max_body_bytes: int = MAX_BODY_BYTES
    timeout_s: float = 20.0

    def __post_init__(self) -> None:
        if self.max_body_bytes < 1:
            raise ValueError("max_body_bytes must be 1 or more")
        if not 0 < self.timeout_s <= MAX_TIMEOUT_S:
            raise ValueError("timeout_s must be more than 0 and at most 300")
        if self.verify in {Verify.HEADER, Verify.HMAC} and not self.header:
            raise ValueError("header must name the header that holds the secret or the signature")
        if self.provider is Provider.GITLAB:
            self._check_gitlab()
        if self.provider is Provider.GENERIC and not (self.mapping.verdict and self.mapping.id):
            raise ValueError("mapping must say at least where id and verdict stand")

    def _check_gitlab(self) -> None:
        address = urlsplit(self.api_url)
        if not address.hostname or address.scheme not in {"http", "https"}:
            raise ValueError("api_url must be an address such as https://gitlab.com")
        if address.scheme == "http" and address.hostname not in _LOOPBACK:
            raise ValueError("api_url must be https: the token would travel in clear")
        if self.token is not None and not self.bot_login.strip():
            raise ValueError("bot_login must name the account that the token belongs to")
        if self.verify is not None:
            raise ValueError("verify is not for gitlab: it sends X-Gitlab-Token")
