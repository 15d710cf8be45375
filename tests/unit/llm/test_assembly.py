"""Parts of a stream put together, and read leniently before."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from upright.engine.ports import Usage
from upright.llm.assembly import Assembly
from upright.llm.quirks import CallPart, Part, read_chunk, whole


def assembled(*parts: Part) -> Assembly:
    made = Assembly()
    for part in parts:
        made.add(part)
    return made


def piece(
    index: int | None = 0, call_id: str = "", name: str = "", arguments: str = ""
) -> CallPart:
    return CallPart(index=index, id=call_id, name=name, arguments=arguments)


def calls(*pieces: CallPart) -> list[tuple[str, str, str]]:
    made = assembled(*(Part(chosen=True, calls=(one,)) for one in pieces)).calls(())
    return [(call.id, call.name, call.arguments) for call in made]


def test_pieces_of_a_call_are_joined_in_order() -> None:
    assert calls(
        piece(call_id="a", name="run", arguments='{"x"'),
        piece(arguments=":1"),
        piece(arguments="}"),
    ) == [("a", "run", '{"x":1}')]


def test_calls_that_alternate_are_told_apart_by_index() -> None:
    assert calls(
        piece(0, "a", "run"),
        piece(1, "b", "stop"),
        piece(0, arguments="{}"),
        piece(1, arguments="[]"),
    ) == [("a", "run", "{}"), ("b", "stop", "[]")]


def test_an_id_and_name_repeated_in_every_delta_are_taken_once() -> None:
    assert calls(piece(0, "a", "run", "{"), piece(0, "a", "run", "}")) == [("a", "run", "{}")]


def test_a_new_id_and_name_at_the_same_index_is_a_new_call() -> None:
    assert calls(piece(0, "a", "run", "{}"), piece(0, "b", "run", "{}")) == [
        ("a", "run", "{}"),
        ("b", "run", "{}"),
    ]


def test_calls_without_an_index_are_told_apart_by_their_names() -> None:
    assert calls(
        piece(None, "", "run", "{"), piece(None, "", "", "}"), piece(None, "", "stop", "{}")
    ) == [("made_0", "run", "{}"), ("made_1", "stop", "{}")]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert calls(piece(0, "a", "run")) == [("a", "run", "{}")]


@pytest.mark.parametrize("used", [{"a"}, {"a", "made_1"}, {"made_0", "a", "made_3"}])
@pytest.mark.clause("B8.2")
def test_an_id_that_was_used_in_the_session_is_replaced_by_a_new_one(used: set[str]) -> None:
    made = assembled(
        Part(chosen=True, calls=(piece(0, "a", "run"), piece(1, "", "run"), piece(2, "c", "run")))
    ).calls(used)
    ids = [call.id for call in made]
    assert len(set(ids) | used) == len(used) + 3
    assert ids[2] == "c"


def test_the_same_transcript_gives_the_same_new_ids() -> None:
    made = assembled(Part(chosen=True, calls=(piece(0, "a", "run"),)))
    assert made.calls({"a"}) == made.calls({"a"})


def test_a_refusal_stands_where_no_text_is() -> None:
    refused = Part(chosen=True, refusal="No.")
    assert assembled(refused).text() == "No."
    assert assembled(refused, Part(chosen=True, text="Well.")).text() == "Well."


@pytest.mark.parametrize(
    ("parts", "complete"),
    [
        ([Part(chosen=True, text="a")], False),
        ([Part(chosen=True, text="a"), Part(chosen=True, finish="stop")], True),
        ([Part(chosen=True, text="a"), Part(usage=Usage(input=1))], True),
        ([Part(chosen=True, text="a", usage=Usage(input=1))], False),
        ([], False),
    ],
    ids=["cut", "finished", "counted", "counted on the way", "nothing"],
)
def test_a_stream_is_whole_only_with_a_reason_or_final_counts(
    parts: list[Part], *, complete: bool
) -> None:
    assert assembled(*parts).complete is complete


def test_surrogates_that_were_torn_apart_become_their_character() -> None:
    assert whole(["well \ud83d", "\ude80"]) == "well 🚀"
    assert whole(["lonely \ud83d"]) == "lonely \ufffd"
    assert whole(["plain"]) == "plain"


def chunk(**fields: object) -> SimpleNamespace:
    return SimpleNamespace(**fields)


@pytest.mark.parametrize(
    "odd",
    [
        chunk(),
        chunk(choices=None, usage=None, model=None),
        chunk(choices=[], model=7),
        chunk(choices=[chunk(delta=None, finish_reason=None)]),
        chunk(choices=[chunk(delta=chunk(content=None, tool_calls=None))]),
        chunk(choices=[{"delta": {"content": None}}]),
    ],
    ids=["empty", "nulls", "no choices", "no delta", "null delta", "dictionaries"],
)
def test_whatever_is_missing_in_a_chunk_it_is_read(odd: SimpleNamespace) -> None:
    part = read_chunk(odd)
    assert (part.text, part.calls, part.finish, part.usage, part.model) == ("", (), "", None, "")


def test_a_call_without_function_or_index_is_read() -> None:
    part = read_chunk(chunk(choices=[chunk(delta=chunk(tool_calls=[chunk(id="a")]))]))
    assert part.calls == (piece(None, "a"),)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            chunk(
                prompt_tokens=10,
                completion_tokens=2,
                prompt_tokens_details=chunk(cached_tokens=8),
            ),
            Usage(input=10, cached=8, output=2),
        ),
        (
            chunk(prompt_tokens=10, completion_tokens=2, prompt_cache_hit_tokens=6),
            Usage(input=10, cached=6, output=2),
        ),
        (chunk(prompt_tokens=None, completion_tokens=-1), Usage()),
        (
            chunk(prompt_tokens=4, prompt_tokens_details=chunk(cached_tokens=9)),
            Usage(input=4, cached=4),
        ),
    ],
    ids=["openai", "deepseek", "nonsense", "more cached than sent"],
)
def test_counts_are_read_by_each_name(usage: SimpleNamespace, expected: Usage) -> None:
    assert read_chunk(chunk(choices=[], usage=usage)).usage == expected
