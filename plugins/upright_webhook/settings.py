"""Settings of one webhook source."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final

from upright.api import SecretRef
from upright_webhook.template import check

MAX_BODY_BYTES: Final = 1024 * 1024
MOST_BODY_BYTES: Final = 25 * 1024 * 1024


class Scheme(StrEnum):
    """How a request proves who sent it; see :mod:`upright_webhook.verify`."""

    GITHUB = "github"
    SLACK = "slack"
    STRIPE = "stripe"
    STANDARD = "standard"
    BEARER = "bearer"
    BASIC = "basic"
    HEADER = "header"


class Answer(StrEnum):
    """What the sender hears: 202 with our ids, a fixed text, or its own challenge back."""

    ACCEPTED = "accepted"
    TEXT = "text"
    CHALLENGE = "challenge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """``[sources.NAME.map]``: each value is a text with ``{path.in.the.body}`` in it.

    ``{header:x-name}`` is a header. What is not there is empty. ``kind`` always begins with
    ``webhook.``; ``actor`` is the id that the configuration's people may list as ``NAME:ID``.
    ``skip_unless`` lets only requests through in which it is not empty.
    """

    kind: str = "webhook.received"
    title: str = ""
    text: str = ""
    thread: str = ""
    actor: str = "webhook"
    actor_name: str = ""
    occurred_at: str = ""
    link: str = ""
    repository: str = ""
    branch: str = ""
    sha: str = ""
    urgent: str = ""
    skip_unless: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            for text in (value,) if isinstance(value, str) else (text for _, text in value):
                check(each.name, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Keys of ``[sources.NAME]`` with ``connector = "webhook"``; it is called at ``/hooks/NAME``.

    ``scheme`` and ``secret`` verify a request. ``user`` is for ``basic``, ``header`` names the one
    of ``header``. ``window_s`` is how old a signed time may be. ``dedupe`` are templates of the key
    by which a second copy is known (the first one that is not empty counts); without any it is the
    digest of the body. ``answer`` says what the sender hears, with ``answer_text``, or the
    ``challenge`` found by a template. ``bot`` says that a program speaks, not a person.

    Raises:
        ValueError: a value that can't work, named by its key.
    """

    scheme: Scheme
    secret: SecretRef
    user: str = ""
    header: str = ""
    window_s: float = 300.0
    max_body_bytes: int = MAX_BODY_BYTES
    answer: Answer = Answer.ACCEPTED
    answer_text: str = "ok"
    challenge: str = "{challenge}"
    dedupe: tuple[str, ...] = ()
    bot: bool = False
    map: Mapping = field(default_factory=Mapping)

    def __post_init__(self) -> None:
        if (self.scheme is Scheme.HEADER) is not bool(self.header.strip()):
            raise ValueError("header must name a header with scheme `header`, and only there")
        if (self.scheme is Scheme.BASIC) is not bool(self.user):
            raise ValueError("user must be given with scheme `basic`, and only there")
        if not 1 <= self.window_s <= 86_400:
            raise ValueError("window_s must be between 1 and 86400")
        if not 1 <= self.max_body_bytes <= MOST_BODY_BYTES:
            raise ValueError("max_body_bytes must be between 1 and 26214400")
        for text in (self.challenge, *self.dedupe):
            check("dedupe", text)
