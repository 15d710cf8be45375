"""Notify: whether the sources by which people are to be notified can do that."""

from __future__ import annotations

from collections.abc import Mapping

from upright.api import Capabilities
from upright.settings.errors import SettingsError
from upright.settings.shape import Settings


def check_notify(settings: Settings, able: Mapping[str, Capabilities]) -> None:
    """Look at each ``notify``; a source that is off or can't be loaded says so itself.

    Raises:
        SettingsError: it sends to no room.
    """
    for name, place in settings.terms().notify.items():
        can = able.get(place.source)
        if can is not None and place.kind not in can.destinations:
            kind = settings.sources[place.source].connector
            problem = f"{place.source} can't notify anybody: {kind} sends no message to a room"
            key = f"people.{name}.notify"
            raise SettingsError(key, str(settings.file), problem)
