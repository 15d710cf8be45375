"""Landlock: lets a process write below a few folders only, and never takes that back.

Source: the kernel's Documentation/userspace-api/landlock.rst. What is not below a writable folder
can't be changed, made, removed, renamed or cut short; what is below neither a writable nor a
readable one can't be read or run, if reading is limited at all. Landlock knows no exceptions: to
hide a folder is to let everything beside it be read, on every level. The network is not limited.
From ABI 6 on the process can't signal what runs outside its own confinement either.
"""

from __future__ import annotations

import ctypes
import os
import struct

LEAST_ABI = 3  # before it, files could be cut short anywhere
SCOPED_ABI = 6
WRITABLE_FILES = ("/dev",)  # null, tty and the like: to be written, not made

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_NO_NEW_PRIVS = 38  # PR_SET_NO_NEW_PRIVS
_PATH_BENEATH = 1
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_READS = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE
_CHANGES = _WRITE_FILE | _TRUNCATE | sum(1 << bit for bit in range(4, 14))
_SCOPES = 0b11  # abstract sockets, signals
_FOLDER = os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW if hasattr(os, "O_PATH") else 0
_ANY = os.O_PATH | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0


def abi() -> int:
    """Return the kernel's version of Landlock; 0 where there is none."""
    if not _FOLDER:
        return 0
    found: int = _libc().syscall(_CREATE_RULESET, None, 0, 1)
    return max(found, 0)


def ruleset(writable: list[str], readable: list[str], hidden: list[str]) -> int:
    """Return a handle of the rules that let everything below *writable* be changed.

    Without *readable* everything may be read but what is below *hidden*; else only what is below
    either list. What is readable or hidden may be missing, a file or a link.

    Raises:
        OSError: a folder isn't there or is a link, or the kernel can't enforce this.
    """
    version = abi()
    if version < LEAST_ABI:
        raise OSError(95, "Landlock is too old")
    reads = _READS if readable or hidden else 0
    attributes = struct.pack("<QQQ", _CHANGES | reads, 0, _SCOPES)
    size = len(attributes) if version >= SCOPED_ABI else 8
    rules = _checked(_libc().syscall(_CREATE_RULESET, attributes, size, 0))
    for path in WRITABLE_FILES:
        _allow(rules, path, _WRITE_FILE | _TRUNCATE | reads, _FOLDER)
    for path in writable:
        _allow(rules, path, _CHANGES | reads, _FOLDER)
    for path in readable:
        _let_read(rules, path)
    if hidden and not readable:
        _allow(rules, "/", _READ_DIR, _FOLDER)  # names, also of what is hidden, but no content
        _let_read_around(rules, "/", {os.path.realpath(path) for path in hidden})
    return rules


def _let_read(rules: int, path: str) -> None:
    if os.path.exists(path):
        _allow(rules, path, _READS if os.path.isdir(path) else _READS & _OF_FILES, _ANY)


def _let_read_around(rules: int, folder: str, hidden: set[str]) -> None:
    """Let everything in *folder* be read but what is hidden; what comes later is not among it."""
    ways = {path for path in _above(hidden) if os.path.dirname(path) == folder}
    for path in sorted(_within(folder) | ways):
        if path in hidden or os.path.islink(path):
            continue
        if path in ways:
            _let_read_around(rules, path, hidden)
            continue
        try:
            _let_read(rules, path)
        except FileNotFoundError:  # it was there a moment ago
            continue


def _within(folder: str) -> set[str]:
    """Return what lies in a folder; of one that may not be listed, nothing."""
    try:
        return {os.path.join(folder, name) for name in os.listdir(folder)}
    except (PermissionError, FileNotFoundError):
        return set()


def _above(paths: set[str]) -> set[str]:
    """Return every folder above these, but the root."""
    found = set()
    for path in paths:
        while (path := os.path.dirname(path)) != "/":
            found.add(path)
    return found


def restrict(rules: int) -> None:
    """Put this process under the rules, and with it all that it will start.

    Raises:
        OSError: the kernel refuses.
    """
    libc = _libc()
    _checked(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT_SELF, rules, 0))


def _allow(rules: int, path: str, access: int, how: int) -> None:
    folder = os.open(path, how)
    try:
        rule = struct.pack("<Qi", access, folder)
        _checked(_libc().syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0))
    finally:
        os.close(folder)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
