"""The fixtures of the command line."""

from __future__ import annotations

from fixtures.cli_hub import home, served, upright
from fixtures.web_hub import behind, story_file

__all__ = ["behind", "home", "served", "story_file", "upright"]
