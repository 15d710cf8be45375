"""Late: a trigger that was learned of by catching up says so, to rules, people and the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from upright.api import Trigger

FACT: Final = ("late", "yes")


def late(trigger: Trigger) -> Trigger:
    """Return the trigger, marked: it happened while nobody listened."""
    if FACT in trigger.context.facts:
        return trigger
    facts = (FACT, *trigger.context.facts)
    return replace(trigger, context=replace(trigger.context, facts=facts))
