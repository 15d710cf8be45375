"""Confine: what holds a command to its bounds; made by the shim, taken on by what it starts."""

from __future__ import annotations

from collections.abc import Callable

from upright_execd.shim.order import Order


def prepared(order: Order) -> Callable[[], None] | None:
    """Return what puts the calling thread under the bounds, for good; None: there are none.

    Raises:
        OSError: this machine can't enforce them; so may the call of what is returned.
    """
    if not order.writable:
        return None
    from upright_execd.shim import landlock, seccomp  # noqa: PLC0415  # 3 ms that most don't need

    rules = landlock.ruleset(order.writable, order.readable, order.hidden)
    filters = seccomp.no_network() if order.without_network else b""

    def take_on() -> None:
        landlock.restrict(rules)
        if filters:
            seccomp.restrict(filters)

    return take_on
