"""SSH: an OpenSSH server of our own on loopback, and a master connection to it."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.world import World

START_S: Final = 10.0
SEPARATION: Final = Path("/run/sshd")  # where a privileged sshd wants an empty folder
# SHLVL: bash must not take itself for a login, and read what the owner of this machine has set up
CONFIG: Final = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
MaxSessions 64
SetEnv SHLVL=2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sshd:
    """A server that runs: its port, the user's key, and how a command is run over the master."""

    port: int
    user: str
    key: str
    prefix: tuple[str, ...]


async def serve(world: World) -> Sshd:
    """Start sshd with keys made now, and a ControlMaster to it."""
    folder, programs = world.place("sshd"), world.peers.programs
    for name in ("host", "user"):
        keygen = [programs["ssh-keygen"], "-q", "-t", "ed25519", "-N", "", "-f", folder / name]
        await world.children.run([str(word) for word in keygen], env={}, within_s=START_S)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "config"
    config.write_text(CONFIG.format(port=port, folder=folder), encoding="ascii")
    if os.geteuid() == 0:
        SEPARATION.mkdir(mode=0o755, exist_ok=True)
    argv = [programs["sshd"], "-D", "-e", "-f", str(config)]
    await world.children.start("sshd", argv, env={})
    user, key, control = getpass.getuser(), str(folder / "user"), str(folder / "control")
    options = ["-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
    common = [programs["ssh"], *options, "-o", f"ControlPath={control}", "-o", "LogLevel=ERROR"]
    where = ["-i", key, "-p", str(port), f"{user}@127.0.0.1"]
    await _until_listening(world, port)
    await world.children.start("ssh-master", [*common, "-M", "-N", *where], env={})
    async with asyncio.timeout(START_S):
        while not await asyncio.to_thread(Path(control).exists):
            world.children.check()
            await world.children.pause()
    prefix = (*common, "-o", "ControlMaster=no", *where)
    return Sshd(port=port, user=user, key=key, prefix=prefix)


async def _until_listening(world: World, port: int) -> None:
    async with asyncio.timeout(START_S):
        while True:
            world.children.check()
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await world.children.pause()
                continue
            writer.close()
            return
