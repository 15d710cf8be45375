"""Seccomp: takes from a process, for good, the calls by which it could reach the network.

Source: the kernel's Documentation/userspace-api/seccomp_filter.rst. ``socket`` fails for every
family: for the internet, and for local sockets too, behind which agents, containers and the session
bus would do what the process itself may not. Pairs of connected sockets and pipes are left. The
ring, whose work no filter sees, and the kernel's keys are taken as well.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2  # linux/prctl.h, linux/seccomp.h
_LOAD, _IS, _REACHES, _RETURN = 0x20, 0x15, 0x35, 0x06  # linux/bpf_common.h
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EACCES, 0x80000000
_OTHER_ABI = 0x40000000  # calls of x32, under the same architecture

_TAKEN = {  # socket, io_uring_setup, add_key, request_key, keyctl
    "x86_64": (0xC000003E, (41, 425, 248, 249, 250)),
    "aarch64": (0xC00000B7, (198, 425, 217, 218, 219)),
}


def is_known() -> bool:
    """Say whether this machine's calls are known here."""
    return sys.platform == "linux" and os.uname().machine in _TAKEN


def no_network() -> bytes:
    """Return the filter.

    Raises:
        OSError: this machine's calls are not known.
    """
    if not is_known():
        raise OSError(errno.EOPNOTSUPP, "no filter for this machine")
    architecture, taken = _TAKEN[os.uname().machine]
    count = len(taken)
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IS, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_REACHES, count + 1, 0, _OTHER_ABI),
        *((_IS, count - place, 0, number) for place, number in enumerate(taken)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def restrict(filters: bytes) -> None:
    """Put this process under the filter, and with it all that it will start.

    Raises:
        OSError: the kernel refuses.
    """
    steps = ctypes.create_string_buffer(filters, len(filters))
    program = struct.pack("@HP", len(filters) // 8, ctypes.addressof(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new = libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    if no_new or libc.prctl(_SET_SECCOMP, _FILTER, ctypes.c_char_p(program), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
