"""Briefing: what the router is told beside a batch: what the hub knows of it, and what went past.

Ids, counts and words of ours alone: nothing of it comes from a trigger's text.
"""

from __future__ import annotations

from collections.abc import Sequence

from upright.core.context import batch
from upright.core.trigger import StoredTrigger
from upright.store import digest, memories, views_routing
from upright.store.events import About
from upright.store.unit import Unit


def for_router(u: Unit, about: About, triggers: Sequence[StoredTrigger]) -> str:
    """Render the router's batch, each trigger with what is known of it (B5.3, B5.4, B6.11).

    Which memory was shown with which trigger is noted: ``upright why`` tells it.
    """
    hints = views_routing.hints(u.c, triggers)
    for one, remembered in memories.of_triggers(u.c, triggers).items():
        told = memories.hint(u.c, remembered)
        hints[one] = f"{hints[one]}; {told}" if one in hints else told
        at = About(trigger_id=one, session_id=about.session_id, turn_id=about.turn_id)
        memories.used(u, at, [remembered.id])
    past = digest.went_past(u.c, about.session_id or "")
    return "\n\n".join(part for part in (past, batch(triggers, hints)) if part)
