"""Errors of the scripted model."""

from __future__ import annotations


class ScriptError(Exception):
    """The script can't be used."""

    code = "script.invalid"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem


class TemplateError(ScriptError):
    """A template can't be filled in."""

    code = "script.template"
