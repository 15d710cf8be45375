"""Errors of the wire: one tree; the docstring is the message for people, ``code`` for machines."""

from __future__ import annotations

from typing import ClassVar


class WireError(Exception):
    """The peer broke the protocol."""

    code: ClassVar[str] = "wire.protocol"

    def __init__(self, **data: object) -> None:
        said = ", ".join(f"{key} {value}" for key, value in data.items())
        sentence = (type(self).__doc__ or self.code).splitlines()[0].rstrip(".")
        super().__init__(f"{sentence}: {said}" if said else sentence)
        self.data = data


class FrameError(WireError):
    """A frame can't be read."""

    code = "wire.frame"


class UnsupportedError(WireError):
    """This kind of message is not known here."""

    code = "wire.unsupported"


class SequenceError(WireError):
    """A frame is missing, doubled or out of order."""

    code = "wire.sequence"


class IllegalMoveError(WireError):
    """This has no place in the present state."""

    code = "wire.illegal_move"


class AuthError(WireError):
    """The other side is not who it says it is."""

    code = "wire.auth"


class MacError(AuthError):
    """A frame was changed on its way."""

    code = "wire.mac"


class SpecError(WireError):
    """A command's description is out of its bounds."""

    code = "wire.spec"


class CreditError(WireError):
    """More bytes are under way than were agreed."""

    code = "wire.credit"
