"""Scene: a conversation under a script: which round it is, what each call shape did, all names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from upright.llm.scripted.errors import TemplateError
from upright.llm.scripted.script import Script, Shape
from upright.llm.scripted.template import render
from upright.llm.scripted.view import Called, Heard, Outcome, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """``start`` is the position where the round began; ``extra`` are names bound by a rule."""

    script: Script
    view: View
    start: int = 0
    heard: Heard | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> list[Called]:
        """Return the calls of a shape that count: this round's, and lasting ones that worked."""
        shape = self.script.shapes[name]
        return [
            call
            for call in self.ever(name)
            if call.position >= self.start or (shape.lasting and call.outcome is Outcome.OK)
        ]

    def ever(self, name: str) -> list[Called]:
        """Return all calls of a shape, over all rounds."""
        shape = self.script.shapes[name]
        return [call for call in self.view.calls if _is_of(call, shape)]

    def latest(self) -> Called | None:
        """Return the round's last call of any shape of the script that is not an aside."""
        shapes = [shape for shape in self.script.shapes.values() if not shape.aside]
        for call in reversed(self.view.calls):
            if any(_is_of(call, shape) for shape in shapes):
                return call if call.position >= self.start else None
        return None

    def is_last(self, names: Iterable[str]) -> bool:
        """Say whether the latest call is of one of these shapes."""
        call = self.latest()
        return call is not None and any(_is_of(call, self.script.shapes[name]) for name in names)

    def name(self, name: str) -> str | None:
        """Look a name up: bound by the rule, of the script, or of what was heard or called.

        ``heard.PATH``: the part that the rule speaks of. ``running.FIELD``: the oldest call that
        has not ended. ``CALL.FIELD``, ``CALL.first.FIELD``: the last and the first of a shape.
        ``latest.FIELD``: the last call of all.
        """
        if name in self.extra:
            return self.extra[name]
        head, _, rest = name.partition(".")
        match head if rest else "":
            case "":
                return self._plain(name)
            case "heard":
                return _text(self.heard.at(rest)) if self.heard else None
            case "latest":
                return _field(self.latest(), rest)
            case "running":
                open_calls = (c for c in self.view.calls if c.outcome is Outcome.RUNNING)
                return _field(next(open_calls, None), rest)
            case _:
                return self._of_shape(head, rest)

    def filled(self, pattern: str) -> str | None:
        """Fill in a pattern's names as literal text; None when one of them is not known."""
        try:
            return render(pattern, self.name, re.escape)
        except TemplateError:
            return None

    def matching(self, heard: Mapping[str, str], after: int) -> list[Heard]:
        """Return the parts after a position whose fields match whole, path by path."""
        wanted = {path: self.filled(pattern) for path, pattern in heard.items()}
        return [
            part
            for part in self.view.heard
            if part.position > after
            and all(
                pattern is not None and re.fullmatch(pattern, _text(part.at(path)) or "", re.DOTALL)
                for path, pattern in wanted.items()
            )
        ]

    def _of_shape(self, name: str, rest: str) -> str | None:
        shape, field = self.script.shapes.get(name), rest.removeprefix("first.")
        calls = self.of(name) if shape else []
        if shape is None or not calls:
            return None
        call = calls[-1 if field == rest else 0]
        hit = shape.match.search(call.line)
        groups = hit.groupdict() if hit else {}
        return groups[field] if field in groups else _field(call, field)

    def _plain(self, name: str) -> str | None:
        if (template := self.script.names.get(name)) is not None:
            try:
                return render(template, self.name)
            except TemplateError:
                return None
        fact = self.script.facts.get(name)
        if fact is None:
            return None
        for part in self.view.heard:
            value = _text(part.at(fact.at)) if part.fields.get("kind") == fact.kind else None
            if value is not None:
                return value
        return fact.default


def open_scene(script: Script, view: View) -> Scene:
    """Find where the last round began, and return the scene from there on."""
    scene = Scene(script=script, view=view)
    for part in view.heard:
        before = replace(scene, view=view.until(part.position))
        if any(_begins(before, part, rule.after, rule.heard) for rule in script.rounds):
            scene = replace(scene, start=part.position)
    return scene


def bind(scene: Scene, names: Mapping[str, str]) -> Callable[[str], str | None]:
    """Return a lookup that knows *names*, too."""
    return replace(scene, extra={**scene.extra, **names}).name


def _begins(before: Scene, part: Heard, after: str, heard: Mapping[str, str]) -> bool:
    if not before.of(after):
        return False
    seen = replace(before, view=replace(before.view, heard=(part,)))
    return bool(seen.matching(heard, before.of(after)[-1].position))


def _is_of(call: Called, shape: Shape) -> bool:
    return call.tool == shape.tool and shape.match.search(call.line) is not None


def _field(call: Called | None, field: str) -> str | None:
    if call is None:
        return None
    match field:
        case "line":
            return call.line
        case "output":
            return "".join(_text(call.fields.get(key)) or "" for key in ("stdout", "stderr"))
        case _:
            value: Any = call.fields
            for key in field.split("."):
                value = value.get(key) if isinstance(value, Mapping) else None
            return _text(value)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
