"""Toolbox: which tools an agent has, by its kind; stable in order, as the prompt's prefix is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from upright.agent.tools import (
    agenda,
    children,
    commands,
    digest,
    files,
    handing,
    home,
    memory,
    neighbours,
    recall,
    replies,
    routing,
    workflow,
)
from upright.agent.tools.base import Tool
from upright.core.transcript import ToolSpec

TOOLS: Final[Mapping[str, tuple[Tool[Any], ...]]] = {
    "router": (
        *routing.TOOLS,
        children.RELATE,
        replies.ROUTER,
        recall.READ,
        digest.DIGEST,
        *memory.TOOLS,
        neighbours.NEIGHBOURS,
        agenda.AGENDA,
        *home.TOOLS,
    ),
    "worker": (
        *commands.TOOLS,
        *files.TOOLS,
        replies.WORKER,
        *workflow.TOOLS,
        *children.TOOLS,
        handing.HAND_BACK,
        recall.READ,
        neighbours.NEIGHBOURS,
        agenda.AGENDA,
        *home.TOOLS,
    ),
}


@cache
def specs(kind: str) -> tuple[ToolSpec, ...]:
    """Return what the model of this kind of agent is told of its tools."""
    return tuple(tool.spec() for tool in TOOLS[kind])


@cache
def by_name(kind: str) -> Mapping[str, Tool[Any]]:
    """Return the tools of this kind of agent, by their names."""
    return {tool.name: tool for tool in TOOLS[kind]}
