"""The fixtures of the plugin shelf."""

from __future__ import annotations

from fixtures.plugins import make_plugin, parts, recorded

__all__ = ["make_plugin", "parts", "recorded"]
