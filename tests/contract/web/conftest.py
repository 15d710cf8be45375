"""The fixtures of the web application."""

from __future__ import annotations

from fixtures.web_hub import behind, client, story_file

__all__ = ["behind", "client", "story_file"]
