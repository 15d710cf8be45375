"""Keys: where they are kept, and what is said when they can't be."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from keyring.errors import KeyringLocked, NoKeyringError, PasswordDeleteError

from upright_execd import pinned
from upright_execd.errors import DamagedError
from upright_execd.keys import (
    DeviceKey,
    KeyFile,
    KeyRing,
    KeyStore,
    KeyStoreError,
    new_private_key,
    one_time,
    open_key,
    verify,
)
from upright_execd.pinned import Pinned
from upright_wire.errors import AuthError


class MemoryRing:
    """A keyring that holds its passwords in a dict.

    No subclass of the library's backend: that registers itself, and other tests would find it.
    """

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.fails_with: Exception | None = None
        self.forgets = False

    def get_password(self, service: str, username: str) -> str | None:
        self._fail()
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._fail()
        if not self.forgets:
            self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if isinstance(self.fails_with, PasswordDeleteError):
            raise self.fails_with
        del self.held[service, username]

    def _fail(self) -> None:
        if self.fails_with is not None and not isinstance(self.fails_with, PasswordDeleteError):
            raise self.fails_with


@pytest.fixture
def ring() -> MemoryRing:
    return MemoryRing()


@pytest.fixture
def stores(ring: MemoryRing, tmp_path: Path) -> dict[str, KeyStore]:
    return {"ring": KeyRing(ring=ring), "file": KeyFile(tmp_path / "device.key")}


@pytest.mark.parametrize("kind", ["ring", "file"])
def test_a_key_is_kept_found_and_wiped(stores: dict[str, KeyStore], kind: str) -> None:
    store, private = stores[kind], new_private_key()
    assert store.load() is None
    store.wipe()
    store.save(private)
    assert open_key(store).public == DeviceKey(private).public
    store.wipe()
    with pytest.raises(KeyStoreError, match="execd pair HUB"):
        open_key(store)


@pytest.mark.case("VS/187380")
@pytest.mark.clause("E1.1")
@pytest.mark.parametrize("error", [NoKeyringError("no D-Bus"), KeyringLocked("locked")], ids=str)
def test_a_keyring_that_fails_is_named_with_the_way_to_a_file(
    ring: MemoryRing, error: Exception
) -> None:
    ring.fails_with = error
    for call in (KeyRing(ring=ring).load, KeyRing(ring=ring).wipe):
        with pytest.raises(KeyStoreError, match=r"MemoryRing.*--key-file"):
            call()
    with pytest.raises(KeyStoreError, match=str(error)):
        KeyRing(ring=ring).save(new_private_key())


def test_a_keyring_that_loses_the_key_is_noticed_at_once(ring: MemoryRing) -> None:
    ring.forgets = True
    with pytest.raises(KeyStoreError, match="lost"):
        KeyRing(ring=ring).save(new_private_key())


def test_a_key_that_somebody_else_deleted_first_is_wiped_all_the_same(ring: MemoryRing) -> None:
    store = KeyRing(ring=ring)
    store.save(new_private_key())
    ring.fails_with = PasswordDeleteError("gone")
    store.wipe()


@pytest.mark.clause("E1.1")
def test_a_key_file_is_the_owners_alone_and_says_what_that_is_worth(tmp_path: Path) -> None:
    store = KeyFile(tmp_path / "device.key")
    store.save(new_private_key())
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert "unencrypted" in store.warning


@pytest.mark.clause("E1.1")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_file_that_others_could_touch_is_refused(tmp_path: Path, mode: int) -> None:
    store = KeyFile(tmp_path / "device.key")
    store.save(new_private_key())
    store.path.chmod(mode)
    with pytest.raises(KeyStoreError, match="chmod 600"):
        store.load()


@pytest.mark.parametrize("content", [b"", b"zz", b"00" * 31, b"\xff"], ids=str)
def test_what_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    store = KeyFile(tmp_path / "device.key")
    store.path.write_bytes(content)
    store.path.chmod(0o600)
    with pytest.raises(KeyStoreError):
        store.load()


def test_a_key_file_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    store = KeyFile(tmp_path / "missing" / "device.key")
    with pytest.raises(KeyStoreError, match=r"device\.key"):
        store.save(new_private_key())


def test_a_private_key_is_not_printed() -> None:
    private = new_private_key()
    assert private.hex() not in repr(DeviceKey(private))


def test_signatures_bind_key_and_data() -> None:
    key, other = DeviceKey(new_private_key()), DeviceKey(new_private_key())
    signature = key.sign(b"x")
    assert verify(key.public, signature, b"x")
    assert not verify(key.public, signature, b"y")
    assert not verify(other.public, signature, b"x")
    assert not verify(b"short", signature, b"x")


def test_both_sides_agree_and_a_degenerate_key_does_not() -> None:
    mine, far = one_time(), one_time()
    assert mine.agree(far.eph) == far.agree(mine.eph)
    assert mine.nonce != far.nonce
    with pytest.raises(AuthError):
        mine.agree(bytes(32))


# ------------------------------------------------------------------ the pinned hub
@pytest.mark.clause("E1.2")
def test_the_pinned_hub_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "paired.json"
    assert pinned.load(path) is None
    hub = Pinned(url="wss://h/v1/device", host="h", hub_id="hb", hub_key=b"k" * 32, device_id="dv")
    pinned.save(path, hub)
    assert pinned.load(path) == hub
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "[]", '{"url":1}', "é"])
def test_a_damaged_pairing_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "paired.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DamagedError, match=r"paired\.json"):
        pinned.load(path)
