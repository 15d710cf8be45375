"""Vault: secrets that the owner keeps here for commands. The hub knows and sends their names alone.

What a command is given is read when it starts and is written down nowhere: a spec, its digest, the
spool and every log hold the name.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Final

import keyring
from keyring.errors import KeyringError, PasswordDeleteError

from upright_execd.errors import DamagedError, NotFoundError, SettingsError
from upright_execd.keys import SERVICE, KeyStoreError, Ring
from upright_execd.paths import make_private, write_private

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Vault:
    """The secrets of one owner: in the keyring, or, where it was asked for, in the file itself.

    The file lists all names. Every call blocks.
    """

    def __init__(self, path: Path, ring: Ring | None = None) -> None:
        self._path = path
        self._given = ring

    def names(self) -> tuple[str, ...]:
        """Return the names, sorted.

        Raises:
            DamagedError: the file is something else.
            SettingsError: others could read it.
        """
        return tuple(sorted(self._rows()))

    def read(self, name: str) -> str:
        """Return a secret.

        Raises:
            NotFoundError: there is none of this name.
            KeyStoreError: the keyring doesn't give it.
        """
        rows = self._rows()
        kept = rows.get(name)
        if name in rows and kept is None:
            try:
                kept = self._ring().get_password(SERVICE, _user(name))
            except KeyringError as error:
                raise _failed("read", name) from error
        if kept is None:
            sentence = f"There is no secret {name!r} on this machine."
            raise NotFoundError(sentence, advice=f"Run: execd secret set {name}")
        return kept

    def keep(self, name: str, value: str, *, in_file: bool) -> None:
        """Keep a secret, in place of what had its name.

        Raises:
            SettingsError: that is no name, or no value.
            KeyStoreError: the keyring doesn't take it.
        """
        if not NAME.fullmatch(name) or not value or "\0" in value:
            sentence = f"{name!r} is no name for a secret, or its value is empty."
            raise SettingsError(sentence, advice="Letters, digits, dots, dashes; a value in full.")
        if not in_file:
            try:
                self._ring().set_password(SERVICE, _user(name), value)
            except KeyringError as error:
                raise _failed("keep", name) from error
        self._write(self._rows() | {name: value if in_file else None})

    def drop(self, name: str) -> None:
        """Forget a secret.

        Raises:
            NotFoundError: there is none of this name.
        """
        rows = self._rows()
        if name not in rows:
            sentence = f"There is no secret {name!r} on this machine."
            raise NotFoundError(sentence, advice="Run: execd secret ls")
        if rows.pop(name) is None:
            try:
                self._ring().delete_password(SERVICE, _user(name))
            except PasswordDeleteError:
                pass  # the keyring has lost it already
            except KeyringError as error:
                raise _failed("delete", name) from error
        self._write(rows)

    def _ring(self) -> Ring:
        return self._given or keyring.get_keyring()

    def _rows(self) -> dict[str, str | None]:
        """Return each name with its value, or with None if the keyring has that."""
        try:
            with self._path.open("rb") as file:
                found = os.fstat(file.fileno())
                content = file.read()
        except FileNotFoundError:
            return {}
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            sentence = f"{self._path} could be read by others."
            advice = f"Run: chown $(id -u) {self._path} && chmod 600 {self._path}"
            raise SettingsError(sentence, advice=advice)
        try:
            return {str(name): value for name, value in json.loads(content).items()}
        except (ValueError, AttributeError) as error:
            sentence = f"{self._path} is no list of secrets."
            raise DamagedError(sentence, advice="Delete it, and set them again.") from error

    def _write(self, rows: dict[str, str | None]) -> None:
        make_private(self._path.parent)
        write_private(self._path, json.dumps(rows, indent=1).encode() + b"\n")


def _user(name: str) -> str:
    return f"secret:{name}"


def _failed(what: str, name: str) -> KeyStoreError:
    sentence = f"The keyring can't {what} the secret {name!r}."
    return KeyStoreError(
        sentence, advice=f"Unlock it, or keep it in a file: execd secret set {name} --file"
    )
