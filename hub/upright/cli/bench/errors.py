"""Errors of the bench."""

from __future__ import annotations


class BenchError(Exception):
    """The bench can't go on; the sentence says why."""
