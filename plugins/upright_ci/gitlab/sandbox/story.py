"""Story: what people and runners do at the sandbox; each act returns its webhook."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from upright.api import InboundRequest
from upright_ci.gitlab.sandbox import shapes
from upright_ci.gitlab.sandbox.postman import Postman
from upright_ci.gitlab.sandbox.world import ENDED, Job, Note, Pipeline, Project, Request, World


@dataclass(slots=True, kw_only=True)
class Story:
    """Acts on the world. ``untold`` are the webhooks that nobody has delivered yet."""

    world: World
    base: str
    postman: Postman
    untold: list[InboundRequest] = field(default_factory=list)

    def project(self, path: str) -> Project:
        """Make a project."""
        made = Project(id=self.world.new_id(), path=path)
        self.world.projects[path] = made
        return made

    def request(self, project: Project, title: str, branch: str, sha: str) -> Request:
        """Open a merge request."""
        world = self.world
        now, iid = world.now(), 1 + sum(path == project.path for path, _ in world.requests)
        made = Request(
            id=world.new_id(),
            iid=iid,
            project=project,
            title=title,
            branch=branch,
            sha=sha,
            author="ann",
            created_at=now,
            updated_at=now,
        )
        world.requests[project.path, iid] = made
        self._tell(shapes.request(self.base, made, "open", made.author))
        return made

    def note(self, on: Request, body: str, author: str) -> tuple[Note, InboundRequest]:
        """Write a note."""
        now = self.world.now()
        on = self._touched(on)
        made = Note(
            id=self.world.new_id(),
            request=on,
            body=body,
            author=author,
            created_at=now,
            updated_at=now,
        )
        self.world.notes[made.id] = made
        return made, self._tell(shapes.note(self.base, made, "create"))

    def edit(self, which: int, body: str) -> InboundRequest:
        """Change a note."""
        old = self.world.notes[which]
        made = replace(
            old, body=body, updated_at=self.world.now(), request=self._touched(old.request)
        )
        self.world.notes[which] = made
        return self._tell(shapes.note(self.base, made, "update"))

    def begin(
        self, project: Project, branch: str, sha: str, *, iid: int | None = None
    ) -> tuple[Pipeline, InboundRequest]:
        """Start a pipeline."""
        now = self.world.now()
        made = Pipeline(
            id=self.world.new_id(),
            project=project,
            branch=branch,
            sha=sha,
            status="running",
            created_at=now,
            updated_at=now,
            iid=iid,
        )
        return made, self._put(made)

    def end(
        self, which: Pipeline, status: str, *, trace: str = "", job: str = "unit"
    ) -> InboundRequest:
        """End a pipeline with one job, or send it on to another state."""
        now = self.world.now()
        one = Job(id=self.world.new_id(), name=job, status=status, trace=trace)
        made = replace(
            self.world.pipelines[which.id],
            status=status,
            updated_at=now,
            finished_at=now if status in ENDED else None,
            jobs=(one,),
        )
        return self._put(made)

    def _put(self, made: Pipeline) -> InboundRequest:
        self.world.pipelines[made.id] = made
        on = self.world.requests.get((made.project.path, made.iid or 0))
        return self._tell(shapes.pipeline(self.base, made, on))

    def _touched(self, on: Request) -> Request:
        made = replace(on, updated_at=self.world.now())
        self.world.requests[on.project.path, on.iid] = made
        return made

    def _tell(self, payload: shapes.Shape) -> InboundRequest:
        written = self.postman.written(payload)
        self.untold.append(written)
        return written

    async def tell(self) -> list[int]:
        """Deliver what nobody has delivered yet, in order; return the answers."""
        waiting, self.untold = self.untold, []
        return [await self.postman.deliver(one) for one in waiting]
