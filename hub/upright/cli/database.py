"""Database: where it is, as commands that work on it at rest find it."""

from __future__ import annotations

from upright.cli.place import Place
from upright.settings.secrets import Secrets
from upright.store.address import Address, address


def database(place: Place) -> Address:
    """Return where the configured database is; this may block on the key ring.

    Raises:
        SecretMissingError: its password can't be read.
    """
    settings, reference = place.settings, place.settings.database.password
    secrets = Secrets(place.env, settings.home)
    return address(settings, secrets.resolve(reference) if reference else None)
