"""Metrics: samples in Prometheus's text format, each family with its help and its type.

The format: https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

TEXT_FORMAT: Final = "text/plain; version=0.0.4"
_HELP: Final[Mapping[str, str]] = {
    "upright_backlog_triggers": "Triggers that wait for a turn.",
    "upright_event_streams": "Readers of the stream of events.",
    "upright_event_streams_cut_total": "Readers that were cut off because they did not read.",
    "upright_hooks_refused_total": "Webhooks that were refused, by source and code.",
    "upright_oldest_seconds": "How long the oldest of each queue waits.",
    "upright_stalled": "Unfinished items that nothing will wake: always 0, or it is a bug.",
    "upright_tokens_ending": "Personal tokens that end within seven days.",
}
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def sample(name: str, **labels: str) -> str:
    """Return a sample's name with its labels, their values escaped."""
    if not labels:
        return name
    said = ",".join(f'{label}="{value.translate(_ESCAPES)}"' for label, value in labels.items())
    return f"{name}{{{said}}}"


def written(samples: Mapping[str, float]) -> str:
    """Write samples, which are ``name`` or ``name{label="value"}`` to a number, by their names."""
    families = defaultdict[str, list[str]](list)
    for name in samples:
        families[name.partition("{")[0]].append(name)
    return "".join(
        f"{line}\n" for family in sorted(families) for line in _family(family, families, samples)
    )


def _family(
    family: str, families: Mapping[str, list[str]], samples: Mapping[str, float]
) -> Iterator[str]:
    words = family.removeprefix("upright_").replace("_", " ")
    yield f"# HELP {family} {_HELP.get(family, words[:1].upper() + words[1:] + '.')}"
    yield f"# TYPE {family} {'counter' if family.endswith('_total') else 'gauge'}"
    for name in sorted(families[family]):
        value = float(samples[name])  # what is counted is whole
        yield f"{name} {value:.0f}" if value.is_integer() else f"{name} {value!r}"
