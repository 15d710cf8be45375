from __future__ import annotations

from pathlib import Path

import pytest
from keyring.errors import KeyringLocked, PasswordDeleteError

from upright_execd.errors import DamagedError, NotFoundError, SettingsError
from upright_execd.keys import KeyStoreError
from upright_execd.vault import Vault


class Ring:
    """A keyring that may be locked."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.is_locked = False

    def get_password(self, _service: str, username: str) -> str | None:
        self._check()
        return self.kept.get(username)

    def set_password(self, _service: str, username: str, password: str) -> None:
        self._check()
        self.kept[username] = password

    def delete_password(self, _service: str, username: str) -> None:
        self._check()
        if self.kept.pop(username, None) is None:
            raise PasswordDeleteError

    def _check(self) -> None:
        if self.is_locked:
            raise KeyringLocked


@pytest.fixture
def ring() -> Ring:
    return Ring()


@pytest.fixture
def vault(tmp_path: Path, ring: Ring) -> Vault:
    return Vault(tmp_path / "config/secrets.json", ring)


def test_what_the_keyring_has_is_in_no_file(vault: Vault, ring: Ring, tmp_path: Path) -> None:
    vault.keep("forge", "canary-7d1e", in_file=False)
    path = tmp_path / "config/secrets.json"
    assert (vault.names(), vault.read("forge")) == (("forge",), "canary-7d1e")
    assert "canary" not in path.read_text(encoding="utf-8")
    assert ring.kept == {"secret:forge": "canary-7d1e"}
    vault.drop("forge")
    assert (vault.names(), ring.kept) == ((), {})


def test_a_file_is_the_owners_alone(vault: Vault, ring: Ring, tmp_path: Path) -> None:
    vault.keep("forge", "canary-7d1e", in_file=True)
    path = tmp_path / "config/secrets.json"
    assert (vault.read("forge"), ring.kept) == ("canary-7d1e", {})
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        vault.read("forge")


@pytest.mark.parametrize(("name", "value"), [("", "x"), ("-a", "x"), ("a/b", "x"), ("a", "")])
def test_what_is_no_name_or_no_value_is_refused(vault: Vault, name: str, value: str) -> None:
    with pytest.raises(SettingsError):
        vault.keep(name, value, in_file=True)


def test_what_is_not_there_is_said_with_the_command_that_mends_it(vault: Vault, ring: Ring) -> None:
    with pytest.raises(NotFoundError, match="execd secret set forge"):
        vault.read("forge")
    with pytest.raises(NotFoundError):
        vault.drop("forge")
    vault.keep("forge", "x", in_file=False)
    ring.kept.clear()
    with pytest.raises(NotFoundError):
        vault.read("forge")
    vault.drop("forge")
    assert vault.names() == ()


def test_a_locked_keyring_is_named(vault: Vault, ring: Ring) -> None:
    vault.keep("forge", "x", in_file=False)
    ring.is_locked = True
    with pytest.raises(KeyStoreError, match="--file"):
        vault.read("forge")
    with pytest.raises(KeyStoreError):
        vault.keep("forge", "y", in_file=False)
    with pytest.raises(KeyStoreError):
        vault.drop("forge")
    assert vault.names() == ("forge",)


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_a_damaged_file_is_named(vault: Vault, tmp_path: Path, content: str) -> None:
    vault.keep("forge", "x", in_file=True)
    (tmp_path / "config/secrets.json").write_text(content, encoding="utf-8")
    with pytest.raises(DamagedError, match="no list of secrets"):
        vault.names()
