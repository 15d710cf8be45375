"""Keys: this machine's Ed25519 key, in the OS keyring or in a file of the owner's alone.

The cryptography that the pure wire is handed lives here, too.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final, Protocol

import keyring
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from keyring.errors import KeyringError, PasswordDeleteError

from upright_execd.errors import ExecdError
from upright_execd.paths import write_private
from upright_wire.errors import AuthError
from upright_wire.handshake import NONCE_BYTES, OneTime

SERVICE: Final = "upright-execd"
KEY_BYTES: Final = 32


class KeyStoreError(ExecdError):
    """The device key can't be kept or read; the message says where."""

    code = "execd.key"
    exit_code = 4


class DeviceKey:
    """This machine's key; its private half can't be printed."""

    def __init__(self, private: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(private)
        self.public = self._key.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """Return the signature of *data*."""
        return self._key.sign(data)

    def __repr__(self) -> str:
        return f"DeviceKey({self.public.hex()[:16]})"


def new_private_key() -> bytes:
    """Return a new private key: 32 bytes."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


# ------------------------------------------------------------------ where it is kept
class KeyStore(Protocol):
    """Keeps one private key. Calls may block."""

    def load(self) -> bytes | None:
        """Return the private key; None: there is none yet. Raises KeyStoreError."""
        ...

    def save(self, private: bytes) -> None:
        """Keep a private key in place of what was there. Raises KeyStoreError."""
        ...

    def wipe(self) -> None:
        """Forget the private key; harmless when there is none. Raises KeyStoreError."""
        ...


class Ring(Protocol):
    """A backend of the keyring library. Each call may raise a KeyringError."""

    def get_password(self, service: str, username: str) -> str | None:
        """Return a password that is kept."""
        ...

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a password."""
        ...

    def delete_password(self, service: str, username: str) -> None:
        """Forget a password; PasswordDeleteError when there is none."""
        ...


class KeyRing:
    """The keyring of the operating system, or the one that is given."""

    def __init__(self, name: str = "device", ring: Ring | None = None) -> None:
        self._name = name
        self._ring: Ring = ring or keyring.get_keyring()

    def load(self) -> bytes | None:
        """Return the key that the keyring holds."""
        try:
            text = self._ring.get_password(SERVICE, self._name)
        except KeyringError as error:
            raise self._failed("read", error) from error
        return None if text is None else _from_text(text, "the keyring")

    def save(self, private: bytes) -> None:
        """Put it into the keyring, and see that it comes back."""
        try:
            self._ring.set_password(SERVICE, self._name, private.hex())
        except KeyringError as error:
            raise self._failed("write", error) from error
        if self.load() != private:
            raise KeyStoreError("The keyring lost the key at once.", advice=_ADVICE)

    def wipe(self) -> None:
        """Delete it from the keyring."""
        try:
            if self._ring.get_password(SERVICE, self._name) is not None:
                self._ring.delete_password(SERVICE, self._name)
        except PasswordDeleteError:
            return  # somebody else deleted it first
        except KeyringError as error:
            raise self._failed("delete", error) from error

    def _failed(self, what: str, error: KeyringError) -> KeyStoreError:
        backend = type(self._ring).__name__
        reason = str(error).rstrip(".") or type(error).__name__
        sentence = f"Can't {what} the device key with the keyring ({backend}): {reason}."
        return KeyStoreError(sentence, advice=_ADVICE)


class KeyFile:
    """A file with mode 0600, for machines without a keyring: who can read the disk has the key."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def warning(self) -> str:
        """What the owner must know."""
        return f"The device key lies unencrypted in {self.path}; keep that file to yourself."

    def load(self) -> bytes | None:
        """Read the file, if nobody else can."""
        try:
            with self.path.open(encoding="ascii") as file:
                found = os.fstat(file.fileno())
                text = file.read(1024)
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            sentence = f"Can't read {self.path}: {error}."
            raise KeyStoreError(sentence) from error
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            advice = f"Run: chown $(id -u) {self.path} && chmod 600 {self.path}"
            sentence = f"Others could read {self.path}."
            raise KeyStoreError(sentence, advice=advice)
        return _from_text(text, str(self.path))

    def save(self, private: bytes) -> None:
        """Write the file whole, with mode 0600."""
        try:
            write_private(self.path, private.hex().encode("ascii") + b"\n")
        except OSError as error:
            sentence = f"Can't write {self.path}: {error}."
            raise KeyStoreError(sentence) from error

    def wipe(self) -> None:
        """Delete the file."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            sentence = f"Can't delete {self.path}: {error}."
            raise KeyStoreError(sentence) from error


def open_key(store: KeyStore) -> DeviceKey:
    """Return the key that is kept.

    Raises:
        KeyStoreError: there is none, or it can't be read.
    """
    private = store.load()
    if private is None:
        raise KeyStoreError("This machine has no device key.", advice="Run: execd pair HUB")
    return DeviceKey(private)


_ADVICE: Final = "Unlock it, or keep the key in a file: execd pair HUB --key-file PATH"


def _from_text(text: str, where: str) -> bytes:
    try:
        private = bytes.fromhex(text.strip())
    except ValueError:
        private = b""
    if len(private) != KEY_BYTES:
        advice = "Delete it and pair again."
        sentence = f"What {where} holds is no device key."
        raise KeyStoreError(sentence, advice=advice)
    return private


# ------------------------------------------------------------------ for the wire
def verify(public_key: bytes, signature: bytes, data: bytes) -> bool:
    """Say whether *signature* is that key's, of exactly this data."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def one_time() -> OneTime:
    """Return a nonce and an X25519 key for one socket."""
    private = X25519PrivateKey.generate()

    def agree(far: bytes) -> bytes:
        try:
            return private.exchange(X25519PublicKey.from_public_bytes(far))
        except ValueError as error:
            raise AuthError(eph="degenerate") from error

    public = private.public_key().public_bytes_raw()
    return OneTime(nonce=os.urandom(NONCE_BYTES), eph=public, agree=agree)
