"""Identity: the hub's Ed25519 key, and the cryptography that the pure wire is handed."""

from __future__ import annotations

from collections.abc import Callable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from upright_wire.errors import AuthError
from upright_wire.handshake import NONCE_BYTES, OneTime, key_id

RandomBytes = Callable[[int], bytes]


class HubIdentity:
    """Who this hub is: its id and its key, given as the 32 bytes of a 0600 file.

    Raises:
        ValueError: these are no 32 bytes.
    """

    def __init__(self, hub_id: str, private_key: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(private_key)
        self.hub_id = hub_id
        self.public_key = self._key.public_key().public_bytes_raw()
        self.key_id = key_id(self.public_key)

    def sign(self, data: bytes) -> bytes:
        """Return the hub's signature of *data*."""
        return self._key.sign(data)

    def __repr__(self) -> str:
        return f"HubIdentity({self.hub_id}, {self.key_id})"


def new_private_key() -> bytes:
    """Return a new Ed25519 private key: 32 bytes, to be kept in a 0600 file."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def verify(public_key: bytes, signature: bytes, data: bytes) -> bool:
    """Say whether *signature* is that key's, of exactly this data."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def one_time(random_bytes: RandomBytes) -> OneTime:
    """Return a nonce and an X25519 key for one socket."""
    private = X25519PrivateKey.generate()

    def agree(far: bytes) -> bytes:
        try:
            return private.exchange(X25519PublicKey.from_public_bytes(far))
        except ValueError as error:
            raise AuthError(eph="degenerate") from error

    public = private.public_key().public_bytes_raw()
    return OneTime(nonce=random_bytes(NONCE_BYTES), eph=public, agree=agree)
