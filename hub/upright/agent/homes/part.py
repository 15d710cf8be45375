"""Part: what a session's system message holds of its agent's home (B17.1).

It is read when a generation begins, and stands in the transcript from then on: a home that changes
meanwhile takes effect with the next generation, never in the middle of a prompt (B8.1).
"""

from __future__ import annotations

from upright.agent.homes.templates import ROUTER
from upright.core.home import catalogue
from upright.store import homes, sessions
from upright.store.sessions import Claim
from upright.store.unit import Unit


def home_part(u: Unit, claim: Claim) -> str:
    """Return what a generation that begins now is told of its agent, and note how far that goes.

    The router is told, beside its own home, which agents there are. Empty for an agent that has no
    home.
    """
    agent, _ = homes.of_session(u.c, claim.session)
    seq = homes.newest_seq(u.c, agent)
    if not seq:
        return ""
    sessions.update(u.c, claim, home_seq=seq)
    told = catalogue(agent, homes.read(u.c, agent, seq))
    if agent == ROUTER:
        told += "Agents that `spawn` may name:\n" + "".join(
            f"- {name}: {role}\n" for name, role in homes.roles(u.c) if name != ROUTER
        )
    return f"\n{told}"
