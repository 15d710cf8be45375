"""Acting: on whose behalf a unit of work runs, so that the audit trail is written with the deed.

The web's guard begins a deed around a request; :class:`upright.engine.units.Units` alone looks
for it, and hands the name to the unit. Nothing else reads or writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

OPERATOR: Final = "operator"
"""Who decides where nobody has an account: whoever can read the hub's api.token."""


@dataclass(slots=True, kw_only=True)
class Deed:
    """What somebody is about to do. ``kept``: a committed unit has written it down already.

    ``origin`` is the address that the request came from. ``object`` may be named more exactly
    while the deed is under way: the whole id for its beginning.
    """

    who: str
    account: str
    via: str
    action: str
    object: str
    origin: str
    kept: bool = False

    @property
    def by(self) -> str:
        """The name that rows remember."""
        return OPERATOR if self.via == "local" else self.who


_DEED: Final[ContextVar[Deed | None]] = ContextVar("upright.deed", default=None)


@contextmanager
def acting(deed: Deed) -> Iterator[None]:
    """Let every unit of work within be done for *deed*."""
    token = _DEED.set(deed)
    try:
        yield
    finally:
        _DEED.reset(token)


def by() -> str:
    """Return the name that rows remember of who acts here."""
    found = _DEED.get()
    return found.by if found is not None else OPERATOR


def deed() -> Deed | None:
    """Return the deed that is under way here; None: the hub acts by itself."""
    return _DEED.get()
