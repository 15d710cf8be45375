"""Keys: which thread a run belongs to (B6.10), spelled as the source of its code spells them.

With ``code_host = "github:github.com"`` a run of ``acme/app`` has the keys that GitHub's connector
gives to the pull request, the branch and the commit, so that they are one thread. Without it the
keys are the source's own: nothing else joins them.
"""

from __future__ import annotations

from dataclasses import dataclass

from upright.kit.ci import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Where one trigger belongs."""

    thread: str
    joins: tuple[str, ...] = ()
    related: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A repository on a code host; ``sign`` stands before the number of a request to merge."""

    host: str
    repository: str
    default_branches: frozenset[str] = frozenset()
    sign: str = "#"

    @property
    def base(self) -> str:
        """Return what all keys of this repository begin with."""
        return f"{self.host}/{self.repository}".lower()

    def number(self, number: int) -> str:
        """Return the key of a pull or merge request."""
        return f"{self.base}{self.sign}{number}"

    def issue(self, number: int) -> str:
        """Return the key of an issue."""
        return f"{self.base}#{number}"

    def sha(self, sha: str, *, fork: bool = False) -> str:
        """Return the key of a commit; one that was pushed elsewhere has a space of its own."""
        return f"{self.base}@{'fork:' if fork else ''}{sha.lower()}"

    def branches(self, head: str = "") -> str:
        """Return what the keys of all branches of a head repository begin with."""
        return f"{self.base}:{(head or self.repository).lower()}:"

    def branch(self, branch: str, head: str = "") -> tuple[str, ...]:
        """Return the key of a branch; none for a default branch: everything would join it."""
        if not branch or branch in self.default_branches:
            return ()
        return (self.branches(head) + branch,)

    def check(self, branch: str, name: str) -> str:
        """Return the key of a check on the default branch: red and green of it are one thread."""
        return f"{self.base}/ci/{branch}/{name}"

    def run(self, run: Run, *, head: str = "", fork: bool = False) -> Keys:
        """Return the keys of a run.

        Its request to merge, where one is named; else its branch; else, on a default branch, the
        check itself; else its commit. A commit joins only where nothing better is known: two
        branches made from one commit are two threads.
        """
        commit = (self.sha(run.sha, fork=fork),) if run.sha else ()
        branch = () if fork and not head else self.branch(run.branch, head)
        if run.number is not None:
            return Keys(thread=self.number(run.number), joins=(*commit, *branch))
        if branch:
            return Keys(
                thread=branch[0],
                joins=commit if fork else (),
                related=() if fork else commit,
            )
        if run.branch or not commit:
            return Keys(thread=self.check(run.branch, run.check), related=commit)
        return Keys(thread=commit[0])
