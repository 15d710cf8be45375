"""asyncssh, the server: runs commands as the far end of the bench, on a free port.

Keys are made in the given folder: ``host`` and ``user``, each with ``.pub``.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Any

import asyncssh

CHUNK = 256 * 1024
Foreign = Any  # asyncssh is not in our environment


async def handle(process: Foreign) -> None:
    """Run the command that was asked for; pass its output on, and a signal to it."""
    words = shlex.split(process.command)
    child = await asyncio.create_subprocess_exec(*words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    async with asyncio.TaskGroup() as group:
        signals = group.create_task(_signals(process, child), name="signals")
        out = group.create_task(_pass(child.stdout, process.stdout), name="stdout")
        err = group.create_task(_pass(child.stderr, process.stderr), name="stderr")
        await asyncio.wait([out, err])
        await child.wait()
        signals.cancel()
    process.exit(child.returncode or 0)


async def _signals(process: Foreign, child: Process) -> None:
    """Reading standard input is how asyncssh tells of a signal."""
    try:
        await process.stdin.read()
    except asyncssh.SignalReceived:
        child.terminate()


async def _pass(source: asyncio.StreamReader | None, sink: Foreign) -> None:
    assert source is not None
    while piece := await source.read(CHUNK):
        sink.write(piece)
        await sink.drain()


async def serve(folder: Path) -> None:
    """Serve until SIGTERM; ``ready`` in the folder is told the port."""
    for name in ("host", "user"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(str(folder / name))
        key.write_public_key(str(folder / f"{name}.pub"))
    server = await asyncssh.create_server(
        asyncssh.SSHServer,
        "127.0.0.1",
        0,
        server_host_keys=[str(folder / "host")],
        authorized_client_keys=str(folder / "user.pub"),
        process_factory=handle,
        encoding=None,
        line_editor=False,
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    text = str(server.get_port())
    await asyncio.to_thread((folder / "ready").write_text, text, encoding="ascii")
    await stop.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    asyncio.run(serve(parser.parse_args().folder))
