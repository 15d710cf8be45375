"""Decide: the answer of a script to one request; nothing else is looked at."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from upright.llm.scripted.repair import next_patch
from upright.llm.scripted.rules import agent_of, holding
from upright.llm.scripted.scene import Scene, bind, open_scene
from upright.llm.scripted.script import Rule, Script
from upright.llm.scripted.suspects import suspects
from upright.llm.scripted.template import fill, render
from upright.llm.scripted.view import Outcome, View, read_request

MAX_READ_AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCall:
    """A tool call: its id, the tool's name, the arguments as JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model says; ``rule`` names the rule that said it (empty: none did)."""

    agent: str
    rule: str
    text: str = ""
    calls: tuple[MadeCall, ...] = ()


def decide(script: Script, body: Mapping[str, Any]) -> Answer:
    """Answer a request with the first rule that holds; without one, with silence.

    Raises:
        ScriptError: a rule's template asks for what is not known.
    """
    view = read_request(body, script.headers)
    agent, scene = agent_of(script, view), open_scene(script, view)
    for rule in script.rules:
        bound = list(holding(rule, agent, scene))
        made = [call for one in bound for call in _calls(rule, one)]
        if made:
            return Answer(agent=agent, rule=rule.name, calls=_numbered(made, view))
        if bound and rule.say:
            return Answer(agent=agent, rule=rule.name, text=render(rule.say, bound[-1].name))
    return Answer(agent=agent, rule="")


def _numbered(made: Iterable[Mapping[str, Any]], view: View) -> tuple[MadeCall, ...]:
    """Give each call an id that is new in the conversation."""
    return tuple(
        MadeCall(
            id=f"call_{number}",
            name=call["tool"],
            arguments=json.dumps(call.get("arguments", {}), ensure_ascii=False),
        )
        for number, call in enumerate(made, start=len(view.calls) + 1)
    )


def _calls(rule: Rule, scene: Scene) -> list[Mapping[str, Any]]:
    """Return the filled-in calls; none where ``read`` or ``repair`` finds nothing to do."""
    if rule.read is not None:
        return _reading(rule.read, scene)
    if rule.repair is not None:
        return _repairing(rule.repair, scene)
    return [fill(call, scene.name) for call in rule.calls]


def _reading(spec: Mapping[str, Any], scene: Scene) -> list[Mapping[str, Any]]:
    """Read the files that the failing tests point at and that were not read in this round.

    ``listing``, ``output`` and ``texts`` name calls: of the list of files, of the tests, and of
    reading a file, whose ``match`` names the group ``path``. ``partial`` is found in a text that
    was cut. ``call`` is filled in for each.
    """
    listing = (scene.name(f"{spec['listing']}.stdout") or "").splitlines()
    output = scene.name(f"{spec['output']}.output") or ""
    texts = _texts(scene, spec)
    unread = [path for path in suspects(output, listing, texts) if path not in texts]
    return [fill(spec["call"], bind(scene, {"path": path})) for path in unread[:MAX_READ_AT_ONCE]]


def _repairing(spec: Mapping[str, Any], scene: Scene) -> list[Mapping[str, Any]]:
    """Apply the next repair: ``texts`` and ``output`` as above, ``tried`` names the applying call.

    ``most``: how often in a round. ``never`` matches paths that must stay as they are. ``call``
    is filled in with ``patch``, ``path`` and ``repair``.
    """
    if len(scene.of(spec["tried"])) >= spec["most"]:
        return []
    texts = _texts(scene, spec)
    sources = [path for path in texts if texts[path] and not re.search(spec["never"], path)]
    tried = {str(call.fields.get("stdin")) for call in scene.of(spec["tried"])}
    output = scene.name(f"{spec['output']}.first.output") or ""
    patch = next_patch(scene.script.repairs, sources, texts, output=output, tried=tried)
    if patch is None:
        return []
    names = {"patch": patch.text, "path": patch.path, "repair": patch.repair}
    return [fill(spec["call"], bind(scene, names))]


def _texts(scene: Scene, spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the files read in this round; empty text for one that came cut or not at all."""
    shape, texts = scene.script.shapes[spec["texts"]], dict[str, str]()
    for call in scene.of(shape.name):
        text = str(call.fields.get("stdout", ""))
        is_whole = call.outcome is Outcome.OK and not re.search(spec["partial"], text)
        if hit := shape.match.search(call.line):
            texts[shlex.split(hit["path"])[0]] = text if is_whole else ""
    return texts
