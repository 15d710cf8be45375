"""View: a chat request as the script sees it: who speaks, what was heard, what was called.

A call's result is looked for at two places: its own tool message, and, where that says only that
the job still runs, any later message that holds the same job's end with its output.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from upright.llm.scripted.found import object_of, objects_in

RUNNING_WORDS: Final = frozenset({"still_running", "queued", "running"})
CUT: Final = re.compile(r"\[…bytes \d+ to \d+ of \d+")


class Outcome(StrEnum):
    """How a call came out."""

    OK = "ok"
    FAILED = "failed"  # it ran, and said no
    RUNNING = "running"
    BROKEN = "broken"  # denied, lost, not started, killed: nothing to build on


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One trigger, card or other part of a user message; ``position`` is the message's index.

    ``fields`` holds the first JSON object in it, and what the script's header patterns named.
    """

    position: int
    text: str
    fields: Mapping[str, Any]

    def at(self, path: str) -> object:
        """Return what stands at a dotted path of the fields; None when nothing does."""
        value: object = self.fields
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """One tool call with its outcome; ``line`` is what a script's patterns are matched with.

    ``fields`` are its arguments, and over them what its result says.
    """

    position: int
    tool: str
    line: str
    outcome: Outcome
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The conversation. ``spoke`` is the index of the model's last message, or -1.

    ``rested`` is the index of its last message without calls, or -1.
    """

    system: str
    tools: frozenset[str]
    heard: tuple[Heard, ...]
    calls: tuple[Called, ...]
    spoke: int
    rested: int

    def until(self, position: int) -> View:
        """Return what could be seen before a message."""
        return replace(
            self,
            heard=tuple(item for item in self.heard if item.position < position),
            calls=tuple(call for call in self.calls if call.position < position),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Headers:
    """How user messages are taken apart: where a part begins, and what its header says."""

    split: re.Pattern[str] | None = None
    patterns: tuple[re.Pattern[str], ...] = ()


def read_request(body: Mapping[str, Any], headers: Headers) -> View:
    """Read a request's body, leniently: what is not as the protocol says is not seen."""
    messages = [message for message in body.get("messages") or () if isinstance(message, dict)]
    texts = [content_of(message) for message in messages]
    spoken = [i for i, message in enumerate(messages) if message.get("role") == "assistant"]
    silent = [i for i in spoken if not messages[i].get("tool_calls")]
    return View(
        system="\n".join(
            text for text, m in zip(texts, messages, strict=True) if m.get("role") == "system"
        ),
        tools=frozenset(tool["function"]["name"] for tool in body.get("tools") or ()),
        heard=tuple(_heard(messages, texts, headers)),
        calls=tuple(_calls(messages, texts)),
        spoke=spoken[-1] if spoken else -1,
        rested=silent[-1] if silent else -1,
    )


def content_of(message: Mapping[str, Any]) -> str:
    """Return a message's text, also when it comes in parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _heard(
    messages: Sequence[Mapping[str, Any]], texts: Sequence[str], headers: Headers
) -> Iterator[Heard]:
    said = [
        (position, text)
        for position, (message, text) in enumerate(zip(messages, texts, strict=True))
        if message.get("role") == "user"
    ]
    for position, text in said:
        parts = headers.split.split(text) if headers.split else [text]
        for part in filter(str.strip, parts):
            yield Heard(position=position, text=part, fields=_fields(part, headers))


def _fields(part: str, headers: Headers) -> Mapping[str, Any]:
    """Return what a part says; a header's words outrank those of the object below it."""
    hits = [hit for pattern in headers.patterns if (hit := pattern.match(part))]
    fields = dict(next(objects_in(part), {}))
    for hit in hits:
        fields |= hit.groupdict()
    return fields


def _calls(messages: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> Iterator[Called]:
    paired = list(zip(messages, texts, strict=True))
    answers = {m.get("tool_call_id"): text for m, text in paired if m.get("role") == "tool"}
    ends = _ends(paired)
    for position, message in enumerate(messages):
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            arguments = object_of(function.get("arguments", ""))
            text = answers.get(call.get("id"), "")
            result = object_of(text)
            if _outcome(result) is Outcome.RUNNING:
                result = {**result, **ends.get(str(result.get("job")), {})}
            yield Called(
                position=position,
                tool=str(function.get("name", "")),
                line=_line(function, arguments),
                outcome=_outcome(result),
                fields={**arguments, "result": text, **result},
            )


def _line(function: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    argv = arguments.get("argv")
    if isinstance(argv, list):
        return shlex.join(str(word) for word in argv)
    return f"{function.get('name', '')} {function.get('arguments', '')}"


def _outcome(result: Mapping[str, Any]) -> Outcome:
    word = result.get("outcome")
    if word in RUNNING_WORDS:
        return Outcome.RUNNING
    if word == "exited":
        return Outcome.OK if result.get("code") == 0 else Outcome.FAILED
    if result.get("error") or word not in {None, "ok", "done"}:
        return Outcome.BROKEN
    return Outcome.OK


def _ends(paired: Sequence[tuple[Mapping[str, Any], str]]) -> dict[str, Mapping[str, Any]]:
    """Return what messages say of jobs that ended; the first word on a job counts.

    A tool's result speaks as a whole: what a command printed is no news of a job. News whose
    output is cut doesn't count: there is more to be asked for.
    """
    ends: dict[str, Mapping[str, Any]] = {}
    for message, text in paired:
        is_tool = message.get("role") == "tool"
        for found in [object_of(text)] if is_tool else objects_in(text):
            is_end = found.get("outcome") not in {None, *RUNNING_WORDS}
            if is_end and "job" in found and "stdout" in found and (is_tool or not _is_cut(found)):
                ends.setdefault(str(found["job"]), found)
    return ends


def _is_cut(result: Mapping[str, Any]) -> bool:
    return any(CUT.search(str(result.get(stream, ""))) for stream in ("stdout", "stderr"))
