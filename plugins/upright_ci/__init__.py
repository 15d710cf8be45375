"""CI: GitLab, Buildbot, Jenkins, Buildkite, reports of tests, and anything else that posts JSON.

This module is what the entry point names. It is light: whatever weighs is imported by the
functions below when the hub asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from upright.api import Connector, ConnectorType, hookimpl
from upright_ci.settings import CiSettings, Provider


def _make(source: str, settings: CiSettings) -> Connector:
    gitlab = settings.provider is Provider.GITLAB
    made: Connector = import_module(f"upright_ci.{'gitlab.connector' if gitlab else 'hook'}").make(
        source, settings
    )
    return made


@hookimpl
def upright_connectors() -> Iterable[ConnectorType]:
    """Offer the kind ``ci``."""
    summary = "CI: GitLab, Buildbot, Jenkins, Buildkite, JUnit reports, any JSON"
    return (ConnectorType(kind="ci", summary=summary, settings=CiSettings, make=_make),)


@hookimpl
def upright_commands(group: object) -> None:
    """Add ``gitlab`` to the click group ``upright sandbox``."""
    import_module("upright_ci.gitlab.sandbox.command").add_to(group)
