"""Rules: whether a rule's conditions hold, and what they bind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from upright.llm.scripted.errors import TemplateError
from upright.llm.scripted.scene import Scene
from upright.llm.scripted.script import Agent, Rule, Script
from upright.llm.scripted.template import render
from upright.llm.scripted.view import Heard, Outcome, View


def agent_of(script: Script, view: View) -> str:
    """Return the first agent of the script that this request can be from; empty for none."""
    return next((agent.name for agent in script.agents if _is_agent(agent, view)), "")


def holding(rule: Rule, agent: str, scene: Scene) -> Iterator[Scene]:
    """Yield a scene with the rule's names bound, for each thing that it should answer.

    Nothing is yielded when a condition fails; more than one only for a rule with ``each``.
    """
    if (rule.agent and rule.agent != agent) or not (
        _of_calls(rule, scene) and _of_all(rule, scene)
    ):
        return
    for part in _parts(rule, scene):
        if (bound := _bound(rule, replace(scene, heard=part))) is not None:
            yield bound


def _is_agent(agent: Agent, view: View) -> bool:
    said = agent.system is None or agent.system.search(view.system) is not None
    return said and agent.offers <= view.tools


def _of_calls(rule: Rule, scene: Scene) -> bool:
    """Check the conditions on single shapes."""
    return (
        (not rule.last or scene.is_last(rule.last))
        and all(_came_out(scene, name) is Outcome.OK for name in rule.ok)
        and all(_came_out(scene, name) is Outcome.FAILED for name in rule.failed)
        and all(scene.of(name) for name in rule.called)
        and not any(scene.of(name) for name in rule.uncalled)
    )


def _of_all(rule: Rule, scene: Scene) -> bool:
    """Check the conditions on counts and on the calls together."""
    latest = scene.latest()
    return (
        all(len(scene.ever(name)) < most for name, most in (rule.fewer or {}).items())
        and all(len(scene.ever(name)) >= least for name, least in (rule.least or {}).items())
        and (not rule.latest or (latest is not None and latest.outcome.value in rule.latest))
        and (not rule.running or any(call.outcome is Outcome.RUNNING for call in scene.view.calls))
        and not (rule.quiet and any(p.position > scene.view.spoke for p in scene.view.heard))
    )


def _came_out(scene: Scene, name: str) -> Outcome | None:
    calls = scene.of(name)
    return calls[-1].outcome if calls else None


def _parts(rule: Rule, scene: Scene) -> list[Heard | None]:
    """Return what was heard and matches: all for ``each``, else the last; [None] if unasked."""
    if rule.heard is None:
        return [None]
    since = scene.view.spoke if rule.fresh else -1
    if rule.after:
        calls = scene.of(rule.after)
        if not calls:
            return []
        since = max(since, calls[-1].position)
    parts = scene.matching(rule.heard, since)
    return [*parts] if rule.each else [*parts[-1:]]


def _bound(rule: Rule, scene: Scene) -> Scene | None:
    """Check ``where`` and bind the groups that its patterns name; None when one doesn't hold.

    A condition knows what those before it bound.
    """
    for where in rule.where:
        try:
            value = render(where.value, scene.name)
        except TemplateError:
            return None
        match, unlike = scene.filled(where.match), scene.filled(where.unlike)
        hit = re.search(match, value) if match is not None else None
        if hit is None or (unlike and re.search(unlike, value)):
            return None
        found = {name: text for name, text in hit.groupdict().items() if text is not None}
        scene = replace(scene, extra={**scene.extra, **found})
    return scene
