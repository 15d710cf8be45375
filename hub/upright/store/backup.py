"""Backup: one consistent snapshot of a hub's rows and spilled payloads, as one file.

The file is a tar: ``manifest.json`` first, then ``upright.db``, a SQLite database at the
manifest's revision, then ``spill/<digest>`` for each spilled payload. It is made from either
database and restored into either. Everything here blocks.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final

import sqlalchemy as sa

from upright.store import copying, retention, schema
from upright.store.address import Address
from upright.store.errors import BackupError
from upright.store.spill import Spill

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
DATABASE: Final = "upright.db"
_MOST_BYTES: Final = 16 * 1024**2  # of a manifest
_CHUNK: Final = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup says of itself. ``rows`` counts by table; ``spilled`` are digests."""

    format: int
    revision: str
    made_at_ms: int
    database_sha256: str
    rows: Mapping[str, int]
    spilled: tuple[str, ...]


def write(where: Address, spill: Spill | None, file: Path, *, at_ms: int) -> Manifest:
    """Copy the database at *where* into *file*, whole or not at all; a hub may run on it.

    Nothing that a row names may be pruned meanwhile.

    Raises:
        RevisionError: it is at another revision.
        StoreUnavailableError: it can't be read or reached.
        OSError: the file can't be written.
    """
    file = file.resolve()
    with _folder(file.parent) as folder:
        database = folder / DATABASE
        schema.create(database)
        rows, named = copying.look(where, lambda c: _copied(c, where, database))
        manifest = Manifest(
            format=FORMAT,
            revision=schema.head(),
            made_at_ms=at_ms,
            database_sha256=_digest(database),
            rows=rows,
            spilled=tuple(sorted(named)),
        )
        packed = folder / "packed"
        _pack(packed, manifest, database, spill)
        packed.replace(file)
    _sync(file.parent)
    return manifest


def _copied(
    source: sa.Connection, where: Address, database: Path
) -> tuple[dict[str, int], set[str]]:
    schema.require(where, schema.revision(source))
    rows = copying.change(database, lambda target: copying.rows(source, target))
    return rows, retention.spilled(source)


def _pack(packed: Path, manifest: Manifest, database: Path, spill: Spill | None) -> None:
    said = json.dumps(asdict(manifest), indent=1).encode()
    spilled = {} if spill is None else {named: spill.path(named) for named in manifest.spilled}
    handle = os.open(packed, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as raw:
        with tarfile.open(fileobj=raw, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            head = tarfile.TarInfo(MANIFEST)
            head.size, head.mode = len(said), 0o600
            tar.addfile(head, io.BytesIO(said))
            tar.add(database, DATABASE, filter=_bare)
            for named, path in spilled.items():
                tar.add(path, f"spill/{named}", filter=_bare)
        raw.flush()
        os.fsync(raw.fileno())


def _bare(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Say nothing of who made it on which machine."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


# ------------------------------------------------------------------ reading
@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """A backup whose every byte was checked, in a folder that goes when its user is done."""

    manifest: Manifest
    database: Path
    spill: Spill


@contextmanager
def unpacked(file: Path, beside: Path) -> Iterator[Unpacked]:
    """Unpack and check a backup in a folder within *beside*.

    Raises:
        BackupError: it is none, it is broken, or another revision made it.
        FileNotFoundError: there is no such file.
    """
    with _folder(beside) as folder:
        try:
            found = _unpack(file, folder)
        except (tarfile.TarError, EOFError, ValueError, TypeError, KeyError) as error:
            why = f"this is no backup of Upright's, or it is broken ({error})"
            raise BackupError(str(file), why) from error
        yield found


def read_manifest(file: Path) -> Manifest:
    """Read what a backup says of itself, and check nothing else.

    Raises:
        BackupError: it is none.
        FileNotFoundError: there is no such file.
    """
    try:
        with tarfile.open(file, "r|") as tar:
            return _manifest(tar)
    except (tarfile.TarError, EOFError, ValueError, TypeError, KeyError) as error:
        raise BackupError(str(file), f"this is no backup of Upright's ({error})") from error


def _unpack(file: Path, folder: Path) -> Unpacked:
    spill = Spill(folder / "spill")
    with tarfile.open(file, "r|") as tar:
        manifest = _manifest(tar)
        if manifest.format != FORMAT or manifest.revision != schema.head():
            made = f"format {manifest.format}, revision {manifest.revision}"
            why = f"it has {made}; this program reads format {FORMAT}, revision {schema.head()}"
            raise BackupError(str(file), why)
        places = {DATABASE: (manifest.database_sha256, folder / DATABASE)}
        places |= {f"spill/{named}": (named, spill.path(named)) for named in manifest.spilled}
        while (member := tar.next()) is not None:
            digest, to = places.pop(member.name)
            if _save(tar, member, to) != digest:
                raise ValueError(member.name, "other bytes than were packed")
    if places:
        raise ValueError(*sorted(places), "missing")
    _look_whole(folder / DATABASE)
    return Unpacked(manifest=manifest, database=folder / DATABASE, spill=spill)


def _manifest(tar: tarfile.TarFile) -> Manifest:
    member = tar.next()
    if member is None or member.name != MANIFEST or member.size > _MOST_BYTES:
        raise ValueError(MANIFEST, "is not the first in it")
    with _member(tar, member) as source:
        said = json.loads(source.read())
    return Manifest(**{**said, "spilled": tuple(said["spilled"])})


def _member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    is_whole = member.isfile() and not member.issparse()  # a hole is bytes that nobody sent
    source = tar.extractfile(member) if is_whole else None
    if source is None:
        raise ValueError(member.name, "is no file")
    return source


def _save(tar: tarfile.TarFile, member: tarfile.TarInfo, to: Path) -> str:
    """Write a member to *to*; return the SHA-256 of what it held."""
    to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256()
    handle = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file, _member(tar, member) as source:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _look_whole(database: Path) -> None:
    def job(c: sa.Connection) -> None:
        said = c.exec_driver_sql("PRAGMA integrity_check").scalar()
        if said != "ok":
            raise ValueError(DATABASE, said)
        schema.require(database, schema.revision(c))

    try:
        copying.look(database, job)
    except sa.exc.DatabaseError as error:
        raise ValueError(DATABASE, str(error.orig)) from error


# ------------------------------------------------------------------ files
@contextmanager
def _folder(beside: Path) -> Iterator[Path]:
    """Make a folder that goes again, on the same disk: from there a file is moved in one step."""
    folder = Path(tempfile.mkdtemp(prefix=".upright-backup-", dir=beside))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
