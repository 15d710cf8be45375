"""Real: the same run on the machine's own clock: a database on disk, a model behind HTTP.

It must come to the same decisions and the same tokens as the run on virtual time; that is what
says that virtual time shows the hub, and not itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from aiohttp import web

from upright.cli.bench.ablation import trace
from upright.cli.bench.ablation.arms import Cell
from upright.cli.bench.ablation.books import MODELS, Books
from upright.cli.bench.ablation.meter import pace_s, usage_of
from upright.cli.bench.ablation.mind import decide
from upright.cli.bench.ablation.play import Outcome, Run, World
from upright.cli.bench.ablation.virtual import LoopClock
from upright.engine.ports import ChatReply, ChatRequest, Clock, Reckoned
from upright.llm.chat import OpenAIChat
from upright.llm.endpoint import ModelSettings
from upright.llm.scripted.cache import PromptCache, prompt_of
from upright.llm.scripted.frames import Completion, streamed
from upright.llm.scripted.server import MAX_BODY_BYTES, SESSION_HEADER
from upright.llm.scripted.stream import send
from upright.store import schema
from upright.store.database import Store

SCALE: Final = 0.05
"""Real seconds for one of the trace's: a command of seven minutes takes twenty seconds."""
TASKS: Final = 2


def play_really(cell: Cell) -> Outcome:
    """Run a cell in real time; it takes about a minute."""
    with TemporaryDirectory(prefix="upright-p4-") as folder:
        file = Path(folder).resolve() / "hub.db"
        schema.create(file)
        return asyncio.run(_play(cell, file))


async def _play(cell: Cell, file: Path) -> Outcome:
    store, books, clock = await asyncio.to_thread(Store.open, file), Books(), LoopClock()
    try:
        async with _serving(clock) as url:
            settings = ModelSettings(base_url=url, models=MODELS)
            chat = OpenAIChat(settings, clock, lambda: 0.5)
            await chat.start()
            model = _Counted(chat=chat, books=books, clock=clock)
            world = World(
                arm=cell.arm, seed=cell.seed, store=store, model=model, books=books, scale=SCALE
            )
            try:
                return await Run(world).run(trace.draw(cell.seed, TASKS, cell.follow_ups))
            finally:
                await chat.stop()
    finally:
        await store.close()


@dataclass(slots=True, kw_only=True)
class _Counted:
    """The hub's own client of a chat endpoint, with what it was told written down."""

    chat: OpenAIChat
    books: Books
    clock: Clock

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        self.books.under_way += 1
        try:
            reply = await self.chat.complete(request, on_part)
        finally:
            self.books.under_way -= 1
        self.books.note(request, reply, self.clock.monotonic())
        return reply

    def reckon(self, request: ChatRequest, said_chars: int) -> Reckoned:
        return self.chat.reckon(request, said_chars)


# ------------------------------------------------------------------ the endpoint
@dataclass(slots=True, kw_only=True)
class _Endpoint:
    clock: Clock
    cache: PromptCache = field(default_factory=PromptCache)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        prompt = prompt_of(body)
        hit = self.cache.look_up(request.headers.get(SESSION_HEADER, ""), prompt)
        answer = decide(body)
        await self.clock.sleep(SCALE * pace_s(usage_of(answer, hit)))
        said = Completion(id=prompt.digest(), model=str(body["model"]), answer=answer, hit=hit)
        return await send(request, streamed(said, with_usage=True), None)


@asynccontextmanager
async def _serving(clock: Clock) -> AsyncIterator[str]:
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app.router.add_post("/v1/chat/completions", _Endpoint(clock=clock).complete)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()
