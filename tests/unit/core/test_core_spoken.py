from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from upright.api import Actor, ActorKind, Channel, Content, Context, Trigger
from upright.core.spoken import Spoken, Word, heard, is_late, read

ID: Final = "rq_01k0000000000000000000000a"
DIGEST: Final = "4f2a91c07d"


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (f"approve {ID} {DIGEST}", Spoken(word=Word.APPROVE, request=ID, digest=DIGEST)),
        (
            f" Approve {ID}  {DIGEST.upper()} \n",
            Spoken(word=Word.APPROVE, request=ID, digest=DIGEST),
        ),
        ("approve rq_01k000 4f2a", Spoken(word=Word.APPROVE, request="rq_01k000", digest="4f2a")),
        (f"approve {ID}", Spoken(word=Word.APPROVE, request=ID)),
        (f"DENY {ID}", Spoken(word=Word.DENY, request=ID)),
        (f"answer {ID} main\nnow", Spoken(word=Word.ANSWER, request=ID, text="main\nnow")),
        (f"answer {ID}", Spoken(word=Word.ANSWER, request=ID)),
    ],
)
def test_the_whole_message_is_one_of_three_forms(typed: str, said: Spoken) -> None:
    assert read(typed) == said


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    "typed",
    [
        "",
        "approved",
        "yes",
        "/approve",
        f"I approve {ID} {DIGEST}",
        f"approve {ID} {DIGEST} please",
        f"approve {ID} {DIGEST}.",
        f"approve {ID} yes",
        f"approve {ID}\u200b {DIGEST}",
        f"\u202eapprove {ID} {DIGEST}",
        f"> approve {ID} {DIGEST}",
        f"`approve {ID} {DIGEST}`",
        f"```\napprove {ID} {DIGEST}\n```",
        f'"approve {ID} {DIGEST}"',
        f"approve\n{ID} {DIGEST}",
        f"approve {DIGEST}",
        "approve rq_01k00 4f2a91c07d",
        f"approve wk_01k0000000000000000000000a {DIGEST}",
        f"approve {ID} {'a' * 65}",
        f"deny {ID} because",
        f"deny {ID}!",
        f"\u0430pprove {ID} {DIGEST}",
    ],
)
def test_everything_else_is_text(typed: str) -> None:
    assert read(typed) is None


SAID: Final = Trigger(
    kind="message.created",
    channel=Channel.CHAT,
    actor=Actor(id="u1", kind=ActorKind.OPERATOR),
    content=Content(text=f"deny {ID}", typed=f"deny {ID}"),
    context=Context(thread="room"),
    dedupe=("1",),
)


@pytest.mark.clause("B14.3")
def test_an_operator_who_has_just_typed_it_in_a_chat_is_heard() -> None:
    assert heard(SAID) == Spoken(word=Word.DENY, request=ID)


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    "other",
    [
        *(
            pytest.param(replace(SAID, channel=channel), id=channel)
            for channel in Channel
            if channel is not Channel.CHAT
        ),
        *(
            pytest.param(replace(SAID, actor=Actor(id="u1", kind=kind)), id=kind)
            for kind in ActorKind
            if kind is not ActorKind.OPERATOR
        ),
        pytest.param(replace(SAID, context=Context(thread="room", edit_of="m1")), id="an edit"),
        pytest.param(replace(SAID, content=replace(SAID.content, typed="")), id="not typed"),
        pytest.param(
            replace(SAID, content=replace(SAID.content, attachments=("https://e.example/1",))),
            id="with a file",
        ),
    ],
)
def test_nothing_else_is_heard_whatever_it_says(other: Trigger) -> None:
    assert heard(other) is None


@pytest.mark.parametrize(("facts", "late"), [((), False), ((("late", "yes"),), True)])
def test_what_was_learned_by_catching_up_is_late(
    facts: tuple[tuple[str, str], ...], *, late: bool
) -> None:
    assert is_late(replace(SAID, context=Context(thread="room", facts=facts))) is late
