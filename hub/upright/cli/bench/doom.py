"""Doom: what is to die next, and where; kept in a file, so that a killed hub finds it again."""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright.cli.bench.stops import Place, Side, Victim

MARKS: Final = "kills.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doom:
    """A kill that is wanted: at the next such moment, or ``skip`` moments later."""

    place: Place
    skip: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A kill that was dealt: who, where, and whether a turn was under way."""

    place: Place
    inside_turn: bool
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where dooms are read, kills are noted, and the daemon's pid is found."""

    folder: Path

    @property
    def dooms(self) -> Path:
        """The dooms that wait."""
        return self.folder / "dooms.json"

    @property
    def marks(self) -> Path:
        """The log of kills, synced."""
        return self.folder / MARKS

    @property
    def execd(self) -> Path:
        """The daemon's pid."""
        return self.folder / "execd.pid"

    def go(self, number: int) -> Path:
        """Return what lets the hub with this number begin."""
        return self.folder / f"go.{number}"


def write_dooms(files: Files, dooms: list[Doom]) -> None:
    """Put the dooms in place, whole."""
    rows = [[*_row(doom.place), doom.skip] for doom in dooms]
    new = files.dooms.with_suffix(".new")
    new.write_text(json.dumps(rows), encoding="utf-8")
    new.replace(files.dooms)


def read_dooms(files: Files) -> list[Doom]:
    """Return the dooms that wait; none when there is no file."""
    if not files.dooms.exists():
        return []
    rows = json.loads(files.dooms.read_text(encoding="utf-8"))
    return [Doom(place=_place(row), skip=row[3]) for row in rows]


def _row(place: Place) -> list[str]:
    return [place.victim.value, place.stop, place.side.value]


def _place(row: list[str]) -> Place:
    return Place(Victim(row[0]), row[1], Side(row[2]))


def note(files: Files, mark: Mark) -> None:
    """Append a kill to the log; it is on the disk when this returns."""
    row = {"place": _row(mark.place), "inside_turn": mark.inside_turn, "pid": mark.pid}
    handle = os.open(files.marks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, json.dumps(row).encode() + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)


def marks(files: Files) -> list[Mark]:
    """Return the kills that were noted."""
    if not files.marks.exists():
        return []
    rows = [json.loads(line) for line in files.marks.read_bytes().splitlines()]
    return [
        Mark(place=_place(row["place"]), inside_turn=row["inside_turn"], pid=row["pid"])
        for row in rows
    ]


class Fate:
    """Deals the kills that wait, in the process in which stops are passed; from any thread."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._waiting: list[Doom] = []
        self._read_at = 0
        self._killed = 0

    def passes(self, stop: str, side: Side, *, inside_turn: bool) -> None:
        """Pass a stop: whoever was to die here dies. When it is the hub, this never returns."""
        with self._lock:
            self._look()
            for number, doom in enumerate(self._waiting):
                if (doom.place.stop, doom.place.side) != (stop, side):
                    continue
                if doom.skip:
                    self._waiting[number] = Doom(place=doom.place, skip=doom.skip - 1)
                elif self._kill(doom.place, inside_turn=inside_turn):
                    del self._waiting[number]
                return

    def _look(self) -> None:
        """Read the dooms again when they are others."""
        try:
            changed = self._files.dooms.stat().st_mtime_ns
        except FileNotFoundError:
            return
        if changed != self._read_at:
            self._read_at, self._waiting = changed, read_dooms(self._files)

    def _kill(self, place: Place, *, inside_turn: bool) -> bool:
        pid = os.getpid() if place.victim is Victim.HUB else self._execd()
        if not pid:
            return False
        note(self._files, Mark(place=place, inside_turn=inside_turn, pid=pid))
        self._killed = pid
        os.kill(pid, signal.SIGKILL)
        return True

    def _execd(self) -> int:
        """Return the daemon's pid; 0 while none runs, or none that was not killed already."""
        text = self._files.execd.read_text(encoding="ascii") if self._files.execd.exists() else ""
        pid = int(text or 0)
        return pid if pid != self._killed and _lives(pid) else 0


def _lives(pid: int) -> bool:
    """Say whether there is such a process; 0 is none."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return pid > 0
