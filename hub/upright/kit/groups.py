"""Groups: the one error that a task group's errors are about."""

from __future__ import annotations


def first(error: BaseException) -> BaseException:
    """Return the error itself, or of a group its first, however deep."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
