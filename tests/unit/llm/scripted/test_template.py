"""Templates of a script."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from upright.llm.scripted.errors import TemplateError
from upright.llm.scripted.template import fill, render

NAMES: Mapping[str, str] = {
    "name": "world",
    "tests.code": "0",
    "sha": "0123456789abcdef\n",
    "words": "python3 -m 'un it'",
    "list": '["CI is green", "told"]',
    "quote": 'a "b"',
}


def filled(text: str) -> str:
    return render(text, NAMES.get)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain $ {x}", "plain $ {x}"),
        ("hello ${name}!", "hello world!"),
        ("${tests.code}${name}", "0world"),
        ("${short(sha)}", "0123456"),
        ("${trim(sha)}", "0123456789abcdef"),
        ("${json(quote)}", '"a \\"b\\""'),
        ("${replace(name, 'wor', 'co')}", "cold"),
        ("${sub(name, '[aeiou]', '_')}", "w_rld"),
        ("${found(name, 'o(r)')}", "r"),
        ("${default(gone, name)}", "world"),
        ("${default(found(name, 'x'), gone, 'it\\'s')}", "it's"),
        ("${tail('a\nb\nc\n', '2')}", "b\nc"),
        ("${default(short(gone), 'none')}", "none"),
        ("${changed(diff('f', 'a\n', 'b\n'), '+')}", "b"),
    ],
)
def test_expressions_are_filled_in(template: str, text: str) -> None:
    assert filled(template) == text


@pytest.mark.parametrize(
    "template",
    [
        "${gone}",
        "${",
        "${name",
        "${nothing(name)}",
        "${short(name, name)}",
        "${found(name, '(')}",
        "${name)}",
        "${short(name}",
        "${tail(name, 'x')}",
    ],
)
def test_what_cannot_be_filled_in_is_refused(template: str) -> None:
    with pytest.raises(TemplateError):
        filled(template)


def test_lists_and_tables_are_filled_in_and_words_are_spread() -> None:
    value = {"argv": ["${*words}", "${name}"], "n": 3, "deep": {"x": "${name}"}}
    assert fill(value, NAMES.get) == {
        "argv": ["python3", "-m", "un it", "world"],
        "n": 3,
        "deep": {"x": "world"},
    }


def test_each_item_of_a_list_gets_its_first_case_that_fits() -> None:
    cases = [{"match": "CI", "x": "${item} by ${name}"}, {"match": "", "x": "other: ${item}"}]
    assert fill({"each": "list", "cases": cases}, NAMES.get) == [
        {"x": "CI is green by world"},
        {"x": "other: told"},
    ]


def test_values_are_escaped_where_asked() -> None:
    assert render("^${name}$", {"name": "a.b"}.get, lambda text: text.replace(".", r"\.")) == (
        r"^a\.b$"
    )
