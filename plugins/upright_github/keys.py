"""Keys: which things of GitHub are one thread (B6.10), spelled in one place.

All keys of a repository begin with ``github:HOST/OWNER/NAME`` in lower case (GitHub's names know
no case), so they are unique over hosts and repositories. Then comes

- ``#7``: an issue or a pull request (they share their numbers);
- ``@SHA``: a commit of this repository; ``@fork:SHA``: a commit of which we only know that it was
  pushed elsewhere. Two spaces, so that nobody joins our pull request by opening another one, from
  a fork, on the very same commit;
- ``:HEAD-OWNER/HEAD-NAME:BRANCH``: a branch, always with the repository that it is in;
- ``/ci/BRANCH/CHECK``: a check on the default branch;
- ``/ref/REF``: a tag, or another ref.

A default branch is never a key: everything would join everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from upright.kit.payload import Json

NO_COMMIT: Final = "0" * 40  # what GitHub writes for "there is none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A repository on a host."""

    host: str
    repository: str
    default_branch: str

    @classmethod
    def of(cls, repository: Json) -> Place:
        """Read the ``repository`` of a payload."""
        return cls(
            host=urlsplit(repository.text("html_url")).netloc.lower(),
            repository=repository.text("full_name"),
            default_branch=repository.maybe_text("default_branch"),
        )

    @property
    def base(self) -> str:
        """Return what all keys of this repository begin with."""
        return f"github:{self.host}/{self.repository}".lower()

    def same(self, full_name: str) -> bool:
        """Tell whether a full name is this repository's."""
        return full_name.lower() == self.repository.lower()

    def number(self, number: int) -> str:
        """Return the key of an issue or a pull request."""
        return f"{self.base}#{number}"

    def elsewhere(self, full_name: str, number: int) -> str:
        """Return the key of an issue or a pull request of another repository of this host."""
        return f"github:{self.host}/{full_name}#{number}".lower()

    def sha(self, sha: str, *, fork: bool = False) -> str:
        """Return the key of a commit."""
        return f"{self.base}@{'fork:' if fork else ''}{sha.lower()}"

    def branches(self, head: str = "") -> str:
        """Return what the keys of all branches of a head repository begin with."""
        return f"{self.base}:{(head or self.repository).lower()}:"

    def branch(self, branch: str, head: str = "", *, head_default: str = "") -> tuple[str, ...]:
        """Return the key of a branch of a head repository; none for a default branch."""
        if not branch or branch in {self.default_branch, head_default}:
            return ()
        return (self.branches(head) + branch,)

    def check(self, branch: str, name: str) -> str:
        """Return the key of a check on the default branch."""
        return f"{self.base}/ci/{branch}/{name}"

    def ref(self, ref: str) -> str:
        """Return the key of a ref that is no branch."""
        return f"{self.base}/ref/{ref}"
