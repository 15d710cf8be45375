"""Server: an OpenAI-compatible endpoint whose answers are a script's.

``POST /v1/chat/completions`` (streamed or not), ``GET /v1/models``; beside them
``GET /_scripted/stats``, and ``POST`` and ``DELETE /_scripted/faults``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from aiohttp import web

from upright.llm.scripted.cache import PromptCache, conversation_of, prompt_of
from upright.llm.scripted.decide import Answer, decide
from upright.llm.scripted.errors import ScriptError
from upright.llm.scripted.faults import Fault, FaultKind, Faults, parse_faults
from upright.llm.scripted.frames import Completion, bent, streamed, whole
from upright.llm.scripted.reflex import refusal, shaped
from upright.llm.scripted.script import Script
from upright.llm.scripted.stats import Served, Stats
from upright.llm.scripted.stream import send

MODEL: Final = "scripted"
SESSION_HEADER: Final = "x-session-id"
MAX_BODY_BYTES: Final = 64 * 1024 * 1024

Refused = tuple[int, str, str]
REFUSALS: Final[Mapping[FaultKind, Refused]] = MappingProxyType(
    {
        FaultKind.RATE_LIMITED: (429, "rate_limit_exceeded", "Too many requests."),
        FaultKind.QUOTA: (429, "insufficient_quota", "You exceeded your current quota."),
        FaultKind.UNAUTHORIZED: (401, "invalid_api_key", "Incorrect API key."),
        FaultKind.BAD_REQUEST: (400, "invalid_value", "The request is invalid."),
        FaultKind.NOT_FOUND: (404, "model_not_found", "There is no such model."),
        FaultKind.SERVER_ERROR: (500, "server_error", "The server had an error."),
    }
)


class ScriptedModel:
    """One server's state: the script, the prompts it saw, and what shall go wrong."""

    def __init__(self, script: Script, lacks: Collection[str] = ()) -> None:
        """Make a server of a script; *lacks* names what it can't do (see ``reflex``)."""
        self._script = script
        self._lacks = frozenset(lacks)
        self._cache = PromptCache()
        self._faults = Faults()
        self._stats = Stats()

    def application(self) -> web.Application:
        """Return the web application."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self._complete),
                web.get("/v1/models", self._models),
                web.get("/_scripted/stats", self._show_stats),
                web.post("/_scripted/faults", self._add_faults),
                web.delete("/_scripted/faults", self._clear_faults),
            ]
        )
        return app

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            body = json.loads(raw)
            answer = shaped(body, decide(self._script, body), self._lacks)
        except ScriptError as error:
            return _error((400, "script_error", str(error)))
        except (ValueError, AttributeError, KeyError, TypeError) as error:
            return _error((400, "invalid_request", f"not a chat request: {error!r}"))
        if missing := refusal(body, self._lacks):
            return _error((400, "unsupported_value", missing))
        fault = self._faults.take(answer.agent)
        if fault and fault.kind in REFUSALS:
            self._stats.refused(fault.kind)
            return _error(REFUSALS[fault.kind], fault.retry_after_s)
        completion = self._completion(request, body, answer, fault)
        if not body.get("stream"):
            return web.json_response(whole(completion))
        options = body.get("stream_options") or {}
        frames = streamed(completion, with_usage=bool(options.get("include_usage")))
        return await send(request, frames, fault)

    def _completion(
        self, request: web.Request, body: Mapping[str, Any], answer: Answer, fault: Fault | None
    ) -> Completion:
        """Look the prompt up in the cache, count the call, and wrap the answer."""
        prompt = prompt_of(body)
        conversation = conversation_of(body, request.headers.get(SESSION_HEADER, ""))
        hit, digest = self._cache.look_up(conversation, prompt), prompt.digest()
        model = str(body.get("model") or MODEL)
        tools = sorted(tool["function"]["name"] for tool in body.get("tools") or ())
        self._stats.served(
            Served(
                agent=answer.agent,
                rule=answer.rule,
                model=model,
                conversation=conversation,
                tools=",".join(tools),
                sha256=digest,
                prompt_bytes=hit.prompt_bytes,
                cached_bytes=hit.cached_bytes,
                bust=hit.bust,
                fault=fault.kind if fault else "",
            )
        )
        return Completion(
            id=f"chatcmpl-{digest[:24]}",
            model=model,
            answer=bent(answer, fault),
            hit=hit,
            fault=fault.kind if fault else None,
            lacks=self._lacks,
        )

    async def _models(self, _request: web.Request) -> web.Response:
        row = {"id": MODEL, "object": "model", "created": 0, "owned_by": "upright"}
        return web.json_response({"object": "list", "data": [row]})

    async def _show_stats(self, _request: web.Request) -> web.Response:
        report = {**self._stats.report(), "faults_pending": self._faults.pending()}
        return web.json_response(report)

    async def _add_faults(self, request: web.Request) -> web.Response:
        try:
            self._faults.add(parse_faults(json.loads(await request.read())))
        except ValueError as error:
            return _error((400, "invalid_fault", str(error)))
        return web.json_response({"pending": self._faults.pending()})

    async def _clear_faults(self, _request: web.Request) -> web.Response:
        self._faults.clear()
        return web.json_response({"pending": 0})


def _error(refused: Refused, retry_after_s: float | None = None) -> web.Response:
    status, code, message = refused
    headers = {} if retry_after_s is None else {"Retry-After": f"{retry_after_s:g}"}
    body = {"error": {"message": message, "type": code, "param": None, "code": code}}
    return web.json_response(body, status=status, headers=headers)
