"""Presets: the mappings of those senders whose payloads we know.

Sources: docs.buildbot.net, "HttpStatusPush"; plugins.jenkins.io/notification; buildkite.com/docs,
"Build events".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Final

from upright.kit import ci
from upright_ci.generic import Reading
from upright_ci.settings import CiSettings, JobsMapping, Mapped, Provider

_STAMP: Final = "buildset.sourcestamps.0"
BUILDBOT: Final = Mapped(
    id="buildid",
    check="builder.name",
    verdict="results|complete",  # results is null while it runs
    repository=f"properties.project.0|{_STAMP}.project",
    clone=f"properties.repository.0|{_STAMP}.repository",
    branch=f"properties.branch.0|{_STAMP}.branch",
    sha=f"properties.got_revision.0|properties.revision.0|{_STAMP}.revision",
    number="properties.event_number.0",
    url="url",
    at="complete_at|started_at",
    text="state_string",
    jobs=JobsMapping(
        at="steps", name="name", verdict="results", text="logs.0.content.content|state_string"
    ),
)
# docs.buildbot.net, "Build Result Codes"
BUILDBOT_VERDICTS: Final[Mapping[str, str]] = {
    "false": ci.STARTED,  # not complete, no results
    "0": ci.SUCCEEDED,
    "1": ci.SUCCEEDED,  # with warnings
    "2": ci.FAILED,
    "3": ci.SKIPPED,
    "4": ci.FAILED,  # an exception of the master's or the worker's
    "5": ci.CANCELLED,  # it is tried again, as another build
    "6": ci.CANCELLED,
}
JENKINS: Final = Mapped(
    id="build.number",
    check="name",
    verdict="build.status|build.phase",
    repository="build.parameters.REPOSITORY",
    clone="build.scm.url",
    branch="build.scm.branch",
    sha="build.scm.commit",
    url="build.full_url",
    at="build.timestamp",
    text="build.log",
)
BUILDKITE: Final = Mapped(
    id="build.id",
    check="pipeline.slug|pipeline.name",
    verdict="build.state",
    repository="build.meta_data.repository",
    clone="pipeline.repository",
    branch="build.branch",
    sha="build.commit",
    number="build.pull_request.id",
    url="build.web_url",
    at="build.finished_at|build.started_at|build.created_at",
    text="build.message",
)
BUILDKITE_VERDICTS: Final[Mapping[str, str]] = {"failing": ci.STARTED, "canceling": ci.STARTED}

_PRESETS: Final[Mapping[Provider, tuple[Mapped, Mapping[str, str]]]] = {
    Provider.BUILDBOT: (BUILDBOT, BUILDBOT_VERDICTS),
    Provider.JENKINS: (JENKINS, {}),
    Provider.BUILDKITE: (BUILDKITE, BUILDKITE_VERDICTS),
}


def written_by_the_build(log: str) -> str:
    """Return a log of Buildbot's without its marks and its headers.

    Each line begins with where it comes from: ``h`` header, ``o`` output, ``e`` error. The headers
    hold the worker's whole environment, which is nobody's business here.
    """
    lines = log.splitlines()
    if not all(line[:1] in {"h", "o", "e", ""} for line in lines) or "\n" not in log:
        return log
    return "\n".join(line[1:] for line in lines if line[:1] in {"o", "e"})


def reading(settings: CiSettings) -> Reading:
    """Return how a source's payloads are read: its own mapping before the provider's."""
    mapping, verdicts = _PRESETS.get(settings.provider, (Mapped(), {}))
    own = {
        each.name: value
        for each in fields(Mapped)
        if (value := getattr(settings.mapping, each.name)) and value != JobsMapping()
    }
    own_verdicts = {word.lower(): kind for word, kind in settings.verdicts.items()}
    return Reading(
        provider=settings.provider.value,
        mapping=replace(mapping, **own),
        verdicts={**verdicts, **own_verdicts},
        log=written_by_the_build if settings.provider is Provider.BUILDBOT else str,
    )
