"""Story: what can happen in the sandbox's world, each thing with the webhook that tells it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from upright_github.sandbox import ci_shapes
from upright_github.sandbox.postman import Hook, Postman
from upright_github.sandbox.shapes import Shape, Shapes, stamp
from upright_github.sandbox.world import Comment, Issue, Push, Run, World

ZEN: Final = "Keep it small."
_HEADS: Final = "refs/heads/"

Told = tuple[Shape, list[str]]  # what is there now, and the GUIDs of the webhooks


@dataclass(frozen=True, slots=True)
class Story:
    """Changes the world and tells it."""

    world: World
    shapes: Shapes
    postman: Postman

    def tell(self, event: str, repo: str, sender: str, payload: Shape) -> list[str]:
        """Tell all hooks; return the GUIDs."""
        repository = self.shapes.repository(self.world.repository(repo))
        common = {"repository": repository, "sender": self.shapes.user(sender)}
        return self.postman.post(event, {**common, **payload})

    def hook(self, hook: Hook) -> Told:
        """Add a hook, and greet it."""
        self.postman.hooks[hook.id] = hook
        url, at = f"{self.shapes.base}/hooks/{hook.id}", stamp(self.world.now())
        kind = {"content_type": hook.content_type, "insecure_ssl": "0", "url": hook.url}
        shape = {
            "type": "Repository",
            "id": hook.id,
            "name": "web",
            "active": True,
            "events": sorted(hook.events) or ["*"],
            "config": kind,
            "updated_at": at,
            "created_at": at,
            "url": url,
            "test_url": f"{url}/test",
            "ping_url": f"{url}/pings",
            "last_response": {"code": None, "status": "unused", "message": None},
        }
        guid = self.postman.ping(hook, {"zen": ZEN, "hook_id": hook.id, "hook": shape})
        return shape, [guid]

    def open_issue(self, issue: Issue) -> Told:
        """Open an issue or a pull request."""
        self.world.put_issue(issue)
        return self._told_issue(issue, "opened", issue.author)

    def change_issue(self, issue: Issue, action: str, author: str) -> Told:
        """Close, merge, edit, lock or reopen an issue or a pull request."""
        now = self.world.now()
        changed = replace(issue, updated_at=now)
        if action in {"closed", "merged"}:
            changed = replace(changed, closed_at=now)
        if action == "merged":
            changed = replace(changed, pull=replace(issue.head, merged_at=now))
        if action == "reopened":
            changed = replace(changed, closed_at=None)
        self.world.put_issue(changed)
        return self._told_issue(changed, "closed" if action == "merged" else action, author)

    def _told_issue(self, issue: Issue, action: str, author: str, **more: str) -> Told:
        if issue.pull is None:
            shape = self.shapes.issue(issue)
            told = {"action": action, "issue": shape}
            return shape, self.tell("issues", issue.repo, author, told)
        shape = self.shapes.pull(issue)
        payload: Shape = {"action": action, "number": issue.number, "pull_request": shape, **more}
        return shape, self.tell("pull_request", issue.repo, author, payload)

    def comment(self, issue: Issue, body: str, author: str) -> Told:
        """Add a comment."""
        return self._told_comment(self.world.add_comment(issue, body, author), "created", author)

    def edit_comment(self, comment: Comment, body: str, author: str) -> Told:
        """Change a comment."""
        changed = replace(comment, body=body, updated_at=self.world.now())
        self.world.comments[comment.id] = changed
        changes: Shape = {"changes": {"body": {"from": comment.body}}}
        return self._told_comment(changed, "edited", author, changes)

    def delete_comment(self, comment: Comment, author: str) -> Told:
        """Delete a comment."""
        told = self._told_comment(comment, "deleted", author)
        del self.world.comments[comment.id]
        return told

    def _told_comment(
        self, comment: Comment, action: str, author: str, more: Shape | None = None
    ) -> Told:
        issue, shape = self.world.issue(comment.repo, comment.number), self.shapes.comment(comment)
        payload = {"action": action, "issue": self.shapes.issue(issue), "comment": shape}
        payload.update(more or {})
        return shape, self.tell("issue_comment", comment.repo, author, payload)

    def push(self, repo: str, push: Push) -> Told:
        """Move a ref; the pull requests of that branch get the new head."""
        repository = replace(self.world.repository(repo), pushed_at=self.world.now())
        self.world.repositories[repo.lower()] = repository
        shape = ci_shapes.push(self.shapes, repository, push)
        sender = {"sender": self.shapes.user(push.author)}
        guids = self.postman.post("push", {**shape, **sender})
        branch = push.ref.removeprefix(_HEADS) if push.ref.startswith(_HEADS) else ""
        for issue in self.world.pulls_of(repo, branch):
            pull = replace(issue.head, sha=push.after)
            changed = replace(issue, pull=pull, updated_at=self.world.now())
            self.world.put_issue(changed)
            more = {"before": push.before, "after": push.after}
            guids += self._told_issue(changed, "synchronize", push.author, **more)[1]
        return shape, guids

    def check_run(self, run: Run) -> Told:
        """Report a check run, new or known."""
        known = self.world.runs.get(run.id)
        self.world.runs[run.id] = run
        shape = ci_shapes.check_run(self.shapes, run)
        action = "completed" if run.status == "completed" else "created"
        if known and action == "created":
            return shape, []  # GitHub tells no other change of a check run
        payload = {"action": action, "check_run": shape}
        return shape, self.tell("check_run", run.repo, run.actor, payload)

    def workflow_run(self, run: Run) -> Told:
        """Report a workflow run, new or known."""
        self.world.runs[run.id] = run
        self.world.flows.add(run.id)
        shape = ci_shapes.workflow_run(self.shapes, run)
        actions = {"completed": "completed", "in_progress": "in_progress"}
        payload = {
            "action": actions.get(run.status, "requested"),
            "workflow": ci_shapes.workflow(self.shapes, run),
            "workflow_run": shape,
        }
        return shape, self.tell("workflow_run", run.repo, run.actor, payload)
