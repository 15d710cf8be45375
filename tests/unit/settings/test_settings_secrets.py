"""Secrets: three schemes, and what is said when one isn't there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import keyring
import keyring.backend
import keyring.backends.fail
import pytest

from upright.api import SecretRef
from upright.settings import ring as key_ring
from upright.settings.errors import SecretMissingError
from upright.settings.secrets import Secrets


class MemoryRing(keyring.backend.KeyringBackend):
    priority = 1.0

    def get_password(self, service: str, username: str) -> str | None:
        held = vars(self).get(f"{service}/{username}")
        return None if held is None else str(held)

    def set_password(self, service: str, username: str, password: str) -> None:
        vars(self)[f"{service}/{username}"] = password


Make = Callable[[], keyring.backend.KeyringBackend]  # keyring's own constructors are untyped


@pytest.fixture
def ring() -> Iterator[None]:
    before, make = keyring.get_keyring(), cast("Make", MemoryRing)
    keyring.set_keyring(make())
    yield
    keyring.set_keyring(before)


def test_each_scheme_is_read(tmp_path: Path, ring: None) -> None:
    (tmp_path / "hook").write_text("from file\n", encoding="utf-8")
    (tmp_path / "hook").chmod(0o600)
    key_ring.store("hook", "from ring")
    secrets = Secrets({"HOOK": "from env"}, tmp_path)
    read = [
        secrets.resolve(SecretRef(ref)).reveal()
        for ref in ("env:HOOK", "file:hook", "keyring:hook")
    ]
    assert read == ["from env", "from file", "from ring"]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("env:NO", "the variable NO is not set"),
        ("file:no", "No such file"),
        ("keyring:no", "upright secret set no"),
        ("vault:no", "it must begin with"),
    ],
)
def test_what_is_missing_is_said_with_its_reference(
    tmp_path: Path, ring: None, reference: str, said: str
) -> None:
    with pytest.raises(SecretMissingError, match=said) as caught:
        Secrets({}, tmp_path).resolve(SecretRef(reference))
    assert reference in str(caught.value)


def test_a_file_that_everybody_may_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hook").write_text("x", encoding="utf-8")
    (tmp_path / "hook").chmod(0o644)
    with pytest.raises(SecretMissingError, match="chmod 600"):
        Secrets({}, tmp_path).resolve(SecretRef("file:hook"))


def test_without_a_key_ring_the_way_out_is_said(tmp_path: Path, ring: None) -> None:
    make = cast("Make", keyring.backends.fail.Keyring)
    keyring.set_keyring(make())
    with pytest.raises(SecretMissingError, match="use file:PATH"):
        Secrets({}, tmp_path).resolve(SecretRef("keyring:x"))
    with pytest.raises(SecretMissingError, match="use file:PATH"):
        key_ring.store("x", "y")


async def test_several_are_fetched_at_once_and_the_missing_are_values(tmp_path: Path) -> None:
    there, gone = SecretRef("env:A"), SecretRef("env:B")
    found = await Secrets({"A": "a"}, tmp_path).fetch((there, gone, there))
    assert str(found[there]) == "Secret(…)"
    assert isinstance(found[gone], SecretMissingError)
