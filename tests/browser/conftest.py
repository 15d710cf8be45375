from __future__ import annotations

from fixtures.web_hub import story_file

__all__ = ["story_file"]
