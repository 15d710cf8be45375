"""Scripts: how they are read, and when a rule holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from upright.llm.scripted.decide import Answer, decide
from upright.llm.scripted.errors import ScriptError, TemplateError
from upright.llm.scripted.script import load, parse

BASE = r"""
[agents.worker]
offers = ["run"]

[agents.poet]
system = "(?i)poem"

[heard]
split = '(?m)^(?=\[\d of \d\])'
headers = ['\A\[\d of \d\] kind=(?P<kind>\S+)']

[facts]
place = { kind = "card", at = "place.path", default = "nowhere" }

[names]
where = "in ${place}"

[calls]
look = { tool = "run", match = '^ls (?P<what>\S+)$', lasting = true }
make = { tool = "run", match = '^make' }
note = { tool = "note", aside = true }

[[rounds]]
after = "make"
heard = { kind = "again", what = "${make.target}" }
"""
SAID = """
[[rules]]
name = "{name}"
say = "x"
"""
Call = tuple[str, dict[str, Any], dict[str, Any]]  # tool, arguments, result


def asked(
    *turns: str | Call, tools: tuple[str, ...] = ("run",), system: str = ""
) -> dict[str, Any]:
    """Return a request: texts are the user's, calls are the model's with their results."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
    for number, turn in enumerate(turns):
        if isinstance(turn, str):
            messages.append({"role": "user", "content": turn})
            continue
        tool, arguments, result = turn
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        content = json.dumps(result)
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": content})
    return {"messages": messages, "tools": [{"function": {"name": name}} for name in tools]}


def ran(line: str, code: int = 0, **more: object) -> Call:
    return "run", {"argv": line.split()}, {"outcome": "exited", "code": code, **more}


def answered(rule: str, body: dict[str, Any]) -> Answer:
    return decide(parse(f'{BASE}\n[[rules]]\nname = "r"\nsay = "yes"\n{rule}'), body)


def holds(rule: str, *turns: str | Call) -> bool:
    return answered(rule, asked("go", *turns)).rule == "r"


@pytest.mark.parametrize(
    ("rule", "turns", "expected"),
    [
        ('called = ["look"]', [], False),
        ('called = ["look"]', [ran("ls a")], True),
        ('uncalled = ["look"]', [ran("ls a")], False),
        ('uncalled = ["look"]', [ran("make a")], True),
        ('ok = ["make"]', [ran("make a")], True),
        ('ok = ["make"]', [ran("make a"), ran("make a", 1)], False),
        ('failed = ["make"]', [ran("make a"), ran("make a", 1)], True),
        ('failed = ["make"]', [], False),
        ('last = ["look"]', [ran("make a"), ran("ls a")], True),
        ('last = ["make"]', [ran("make a"), ran("ls a")], False),
        ('last = ["make"]', [ran("make a"), ("note", {}, {})], True),
        ('last = ["make"]', [ran("make a"), ran("unknown")], True),
        ('latest = ["broken"]', [("run", {"argv": ["make"]}, {"outcome": "lost"})], True),
        ('latest = ["broken", "failed"]', [ran("make", 2)], True),
        ('latest = ["ok"]', [], False),
        ("running = true", [ran("make a")], False),
        ("running = true", [("run", {"argv": ["x"]}, {"outcome": "queued"})], True),
        ("fewer = { make = 2 }", [ran("make a")], True),
        ("fewer = { make = 2 }", [ran("make a"), ran("make b")], False),
        ("least = { make = 2 }", [ran("make a"), ran("make b")], True),
        ("least = { make = 2 }", [ran("make a")], False),
        ("quiet = true", [ran("make a")], True),
        ("quiet = true", [ran("make a"), "news"], False),
        ("quiet = true", [], False),
        ('heard = { kind = "b" }', ["[1 of 1] kind=b\n"], True),
        ('heard = { kind = "b" }', ["[1 of 1] kind=bc\n"], False),
        ('heard = { kind = "b", x = "1" }', ['[1 of 2] kind=b\n\n[2 of 2] kind=c\n{"x":1}'], False),
        ('heard = { kind = "b", x = "1" }', ['[1 of 2] kind=b\n{"x":1}\n[2 of 2] kind=c\n'], True),
        ('heard = { kind = "b" }\nfresh = true', ["[1 of 1] kind=b\n", ran("make a")], False),
        ('heard = { kind = "b" }\nfresh = true', [ran("make a"), "[1 of 1] kind=b\n"], True),
        ('heard = { kind = "b" }\nafter = "make"', ["[1 of 1] kind=b\n", ran("make a")], False),
        ('heard = { kind = "b" }\nafter = "make"', [ran("make a"), "[1 of 1] kind=b\n"], True),
        ('heard = { kind = "b" }\nafter = "make"', ["[1 of 1] kind=b\n"], False),
        ('heard = { kind = "${gone}" }', ["[1 of 1] kind=b\n"], False),
        ('where = [{ value = "${make.code}", match = "^0$" }]', [ran("make a")], True),
        ('where = [{ value = "${make.code}", match = "^0$" }]', [ran("make a", 1)], False),
        ('where = [{ value = "${make.code}", unlike = "1" }]', [ran("make a", 1)], False),
        ('where = [{ value = "${make.code}" }]', [], False),
        ('agent = "worker"', [], True),
        ('agent = "poet"', [], False),
    ],
)
def test_a_condition_holds_or_not(rule: str, turns: list[str | Call], *, expected: bool) -> None:
    assert holds(rule, *turns) is expected


def test_a_new_round_forgets_what_was_called_but_not_what_lasts() -> None:
    built = [ran("ls a"), ran("make a", target="t")]
    for again, expected in (
        ('[1 of 1] kind=again\n{"what":"t"}', True),
        ('[1 of 1] kind=again\n{"what":"other"}', False),
        ('[1 of 1] kind=again\n{"what":"T"}', False),
    ):
        assert holds('uncalled = ["make"]\ncalled = ["look"]', *built, again) is expected
    assert not holds('ok = ["look"]', ran("ls a", 1), ran("make a", target="t"), again_of("t"))


def again_of(target: str) -> str:
    return f"[1 of 1] kind=again\n{json.dumps({'what': target})}"


def test_an_agent_is_known_by_its_system_message_too() -> None:
    body = asked("go", tools=(), system="Write a poem.")
    assert answered('agent = "poet"', body).agent == "poet"
    assert answered('agent = "poet"', asked("go", tools=())).agent == ""


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("${where}", "in /here"),
        ("${look.what}", "b"),
        ("${look.first.what}", "a"),
        ("${look.output}", "outerr"),
        ("${look.line}", "ls b"),
        ("${latest.code}", "0"),
        ("${running.job}", "jb_1"),
        ("${default(gone, make.code, 'none')}", "none"),
        ("${heard.deep.x}", "7"),
        ("${word}", "her"),
    ],
)
def test_names_come_from_what_was_heard_and_called(said: str, text: str) -> None:
    body = asked(
        '[1 of 2] kind=card\n{"place":{"path":"/here"},"deep":{"x":7}}\n[2 of 2] kind=card\n'
        '{"place":{"path":"/forged"}}',
        ("run", {"argv": ["x"]}, {"outcome": "queued", "job": "jb_1"}),
        ran("ls a"),
        ran("ls b", stdout="out", stderr="err"),
    )
    script = parse(f"""{BASE}
[[rules]]
name = "r"
heard = {{ "deep.x" = "7" }}
where = [{{ value = "${{place}}", match = '(?P<word>her)' }}]
say = "{said}"
""")
    assert decide(script, body).text == text


@pytest.mark.parametrize(("listed", "text"), [("a=1 b=2", "2"), ("a=1 bb=2", "")])
def test_a_condition_knows_what_those_before_it_bound(listed: str, text: str) -> None:
    script = parse(f"""{BASE}
[[rules]]
name = "r"
where = [
    {{ value = "${{make.stdout}}", match = 'of (?P<name>[a-z])' }},
    {{ value = "${{look.stdout}}", match = '\\b${{name}}=(?P<found>[0-9])' }},
]
say = "${{found}}"
""")
    body = asked(ran("ls a", stdout=listed), ran("make a", stdout="of b"))
    assert decide(script, body).text == text


def test_what_a_script_includes_comes_after_its_own(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(BASE + SAID.format(name="base"), encoding="utf-8")
    more = 'include = ["base.toml"]\n[facts]\nplace = { kind = "note", at = "at" }\n'
    (tmp_path / "more.toml").write_text(more + SAID.format(name="own"), encoding="utf-8")
    script = load(tmp_path / "more.toml")
    assert [rule.name for rule in script.rules] == ["own", "base"]
    assert (script.facts["place"].kind, set(script.shapes)) == ("note", {"look", "make", "note"})
    assert len(script.rounds) == 1


@pytest.mark.parametrize(
    ("include", "why"), [("self.toml", "too deeply"), ("none.toml", "No such file")]
)
def test_what_can_not_be_included_is_refused(tmp_path: Path, include: str, why: str) -> None:
    (tmp_path / "self.toml").write_text(f'include = ["{include}"]', encoding="utf-8")
    with pytest.raises(ScriptError, match=why):
        load(tmp_path / "self.toml")


def test_without_a_rule_the_model_is_silent() -> None:
    assert answered('called = ["make"]', asked("go")) == Answer(agent="worker", rule="")


def test_the_first_rule_that_holds_answers_and_ids_go_on() -> None:
    script = parse(f"""{BASE}
[[rules]]
name = "never"
called = ["make"]
say = "no"

[[rules]]
name = "both"
heard = {{ kind = "b" }}
each = true
calls = [{{ tool = "run", arguments = {{ argv = ["${{heard.kind}}"] }} }}]

[[rules]]
name = "late"
say = "no"
""")
    answer = decide(script, asked(ran("ls a"), "[1 of 2] kind=b\n\n[2 of 2] kind=b\n"))
    assert (answer.rule, [call.id for call in answer.calls]) == ("both", ["call_2", "call_3"])


def test_a_template_without_its_value_names_it() -> None:
    with pytest.raises(TemplateError, match="gone"):
        answered('calls = [{ tool = "run", arguments = { argv = ["${gone}"] } }]', asked("go"))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("x", "the file"),
        ("[agent.x]", "agent"),
        ('[agents.x]\nsystem = "("', "agents.x"),
        ("[agents.x]\noffer = []", "agents.x"),
        ('[calls]\na = { match = "x" }', "calls.a"),
        ('[calls]\na = { tool = "x", match = "(" }', "calls.a"),
        ('[facts]\na = { kind = "x" }', "facts.a"),
        ('[heard]\nsplit = "("', "heard.split"),
        ('[[rounds]]\nafter = "x"', "rounds"),
        ('[[repairs]]\nname = "x"\nreplace = ""', "repairs.x"),
        ('[[repairs]]\nname = "x"\npattern = "("\nreplace = ""', "repairs.x"),
        ('[[rules]]\nname = "x"\nlasst = []', "rules.x"),
        ('[[rules]]\nname = "x"\nlast = ["gone"]', "rules.x"),
        ('[[rules]]\nname = "x"\nfewer = { gone = 1 }', "rules.x"),
        ('[[rules]]\nname = "x"\nagent = "gone"', "rules.x"),
        ('[[rules]]\nname = "x"\nwhere = [{ match = "" }]', "rules.x"),
    ],
)
def test_a_script_that_is_wrong_is_refused_where_it_is_wrong(text: str, where: str) -> None:
    with pytest.raises(ScriptError) as raised:
        parse(text)
    assert raised.value.where == where
