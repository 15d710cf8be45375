"""Servers: a real IMAP, SMTP and CalDAV server and Slack's sandbox, each a process of its own."""

from __future__ import annotations

import asyncio
import email
import imaplib
import json
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Final, cast

import aiohttp

from upright.cli.demo.children import Child, Children, DemoError
from upright.cli.demo.client import Web
from upright.cli.demo.people.drawn import DOMAIN, OWN, Cast
from upright.cli.demo.stage import PYTHON

HERE: Final = "127.0.0.1"
USER: Final = "team"
CHANNEL: Final = "C0TEAM0001"
DIRECT: Final = "D0TEAM0001"
CALENDAR: Final = "desk"
STARTS_S: Final = 30.0
IMAP_S: Final = 10.0
NEEDED: Final = ("pymap", "aiosmtpd", "radicale")  # IMAP, SMTP, CalDAV
MISSING: Final = (
    "this scene needs real mail and calendar servers, and {folder} lacks {what}:"
    " `make .venv-servers/.installed` installs them, `--servers FOLDER` names another place"
)
RADICALE: Final = """\
[server]
hosts = {here}:{port}
[auth]
type = htpasswd
htpasswd_filename = {folder}/users
htpasswd_encryption = plain
delay = 0
[storage]
filesystem_folder = {folder}/store
[rights]
type = owner_only
[web]
type = none
[logging]
level = warning
"""
MKCALENDAR: Final = """\
<?xml version="1.0" encoding="utf-8"?>
<c:mkcalendar xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop>
<d:displayname>desk</d:displayname></d:prop></d:set></c:mkcalendar>
"""
CONFIG: Final = """
[people.asker]
kind = "member"
ids = ["slack:{user}"]

[[rules]]
name = "an invitation to us is work"
verdict = "explicit"
sources = ["post"]
kinds = ["meeting.requested"]
addresses = ["direct"]

[sources.post]
connector = "mail"
addresses = ["{own}"]
name = "The team"
user = "{login}"
password = "env:DEMO_PASSWORD"
authserv_id = "{domain}"
imap = {{ host = "{here}", port = {imap}, tls = "none" }}
smtp = {{ host = "{here}", port = {smtp}, tls = "none" }}
poll_s = 1.0

[sources.desk]
connector = "calendar"
url = "{dav}"
user = "{login}"
password = "env:DEMO_PASSWORD"
addresses = ["{own}"]

[sources.slack]
connector = "slack"
bot_token = "env:DEMO_SLACK_BOT"
app_token = "env:DEMO_SLACK_APP"
api_url = "{slack}"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """What runs, and how it is spoken to from outside. ``posted`` is where SMTP puts mail."""

    imap_port: int
    smtp_port: int
    posted: Path
    dav: Web
    slack: Web
    slack_api: str
    secrets: Mapping[str, str]

    def config(self, user: str) -> str:
        """Return what the hub's configuration says of them; *user* is the person in chat."""
        return CONFIG.format(
            user=user,
            own=OWN,
            login=USER,
            domain=DOMAIN,
            here=HERE,
            imap=self.imap_port,
            smtp=self.smtp_port,
            dav=self.dav.base,
            slack=self.slack_api,
        )

    async def deliver(self, mail: bytes) -> None:
        """Put a mail into the team's mailbox, as a mail server does."""
        password = self.secrets["DEMO_PASSWORD"]
        await asyncio.to_thread(_append, self.imap_port, password, mail)

    async def unseen(self) -> int:
        """Count the mails that nobody has read."""
        password = self.secrets["DEMO_PASSWORD"]
        return await asyncio.to_thread(_unseen, self.imap_port, password)

    async def sent(self) -> list[EmailMessage]:
        """Return all mails that went out by SMTP."""
        return await asyncio.to_thread(_posted, self.posted)

    async def put_event(self, uid: str, text: str) -> None:
        """Put an event into the team's calendar, as another program does."""
        url = f"{self.dav.base}{USER}/{CALENDAR}/"
        await self._dav("MKCALENDAR", url, MKCALENDAR)
        await self._dav("PUT", f"{url}{uid}.ics", text)

    async def _dav(self, method: str, url: str, body: str) -> None:
        signed = aiohttp.encode_basic_auth(USER, self.secrets["DEMO_PASSWORD"])
        headers = {"Content-Type": "text/calendar; charset=utf-8", "Authorization": signed}
        async with self.dav.session.request(
            method, url, data=body.encode(), headers=headers
        ) as answer:
            if answer.status >= 300:
                said = f"{method} {url} answered {answer.status}: {(await answer.text())[:200]}"
                raise DemoError(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where they run. ``environment`` is a virtual environment that has them; empty: our own."""

    folder: Path
    children: Children
    session: aiohttp.ClientSession
    environment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    ground: Ground
    programs: Mapping[str, str]
    secrets: Mapping[str, str]


async def start(ground: Ground, who: Cast) -> Servers:
    """Start all of them, with the channels in which *who* may ask.

    Raises:
        DemoError: one is missing, or does not come up.
    """
    folder, environment = ground.folder, ground.environment
    programs = await asyncio.to_thread(_programs, environment)
    words = ("DEMO_PASSWORD", "DEMO_SLACK_BOT", "DEMO_SLACK_APP")
    parts = _Parts(
        ground=ground,
        programs=programs,
        secrets={name: secrets.token_hex(16) for name in words},
    )
    async with asyncio.TaskGroup() as group:
        imap = group.create_task(_imap(parts), name="imap")
        smtp = group.create_task(_smtp(parts), name="smtp")
        dav = group.create_task(_dav(parts), name="caldav")
        slack = group.create_task(_slack(parts), name="slack")
    told = slack.result()
    servers = Servers(
        imap_port=imap.result(),
        smtp_port=smtp.result(),
        posted=folder / "posted",
        dav=Web(session=ground.session, base=dav.result()),
        slack=Web(session=ground.session, base=told["control"]),
        slack_api=told["url"],
        secrets=parts.secrets,
    )
    channel = {"id": DIRECT, "name": who.user_name, "direct": True}
    await servers.slack.post("/channels", {"id": CHANNEL, "name": "team"})
    await servers.slack.post("/channels", channel)
    return servers


def _programs(environment: str) -> dict[str, str]:
    """Find the servers' programs, by name."""
    folder = Path(environment).absolute() / "bin" if environment else Path(sys.executable).parent
    missing = [name for name in NEEDED if not (folder / name).exists()]
    if missing:
        raise DemoError(MISSING.format(what=", ".join(missing), folder=environment or folder))
    return {name: str(folder / name) for name in NEEDED}


# ------------------------------------------------------------------ one by one
async def _imap(parts: _Parts) -> int:
    port = _free_port()
    argv = [parts.programs["pymap"], "--host", HERE, "--port", str(port)]
    argv += ["--no-tls", "--no-service", "managesieve", "--no-service", "admin", "dict"]
    argv += ["--demo-user", USER, "--demo-password", parts.secrets["DEMO_PASSWORD"]]
    child = await parts.ground.children.start("imap", argv, env={})
    await _up(parts, child, lambda: _greets(port))
    return port


async def _smtp(parts: _Parts) -> int:
    port = _free_port()
    argv = [parts.programs["aiosmtpd"], "-n", "-l", f"{HERE}:{port}"]
    argv += ["-c", "aiosmtpd.handlers.Mailbox", str(parts.ground.folder / "posted")]
    child = await parts.ground.children.start("smtp", argv, env={})
    await _up(parts, child, lambda: _greets(port))
    return port


async def _dav(parts: _Parts) -> str:
    port, folder = _free_port(), parts.ground.folder / "radicale"
    await asyncio.to_thread(_write_dav, folder, port, parts.secrets["DEMO_PASSWORD"])
    argv = [parts.programs["radicale"], "--config", str(folder / "config")]
    child = await parts.ground.children.start("caldav", argv, env={})
    await _up(parts, child, lambda: _connects(port))
    return f"http://{HERE}:{port}/"


def _write_dav(folder: Path, port: int, password: str) -> None:
    folder.mkdir(mode=0o700)
    (folder / "users").write_text(f"{USER}:{password}\n", encoding="ascii")
    text = RADICALE.format(here=HERE, port=port, folder=folder)
    (folder / "config").write_text(text, encoding="utf-8")


async def _slack(parts: _Parts) -> dict[str, str]:
    ready = parts.ground.folder / "slack.ready"
    argv = [*PYTHON, "upright", "sandbox", "slack", "--ready-file", str(ready)]
    argv += ["--bot-token", parts.secrets["DEMO_SLACK_BOT"]]
    argv += ["--app-token", parts.secrets["DEMO_SLACK_APP"]]
    child = await parts.ground.children.start("slack", argv, env={})
    told: dict[str, str] = json.loads(await parts.ground.children.ready(child, ready))
    return told


async def _up(parts: _Parts, child: Child, answers: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(STARTS_S):
        while not await answers():
            if not child.is_alive:
                parts.ground.children.check()
            await parts.ground.children.pause()


async def _greets(port: int) -> bool:
    return await asyncio.to_thread(_reads, port, 1)


async def _connects(port: int) -> bool:
    return await asyncio.to_thread(_reads, port, 0)


def _reads(port: int, least: int) -> bool:
    try:
        with socket.create_connection((HERE, port), timeout=IMAP_S) as there:
            return len(there.recv(1)) >= least if least else True
    except OSError:
        return False


def _free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as one:
        one.bind((HERE, 0))
        return int(one.getsockname()[1])


# ------------------------------------------------------------------ mail, from outside
def _signed_in(port: int, password: str) -> imaplib.IMAP4:
    client = imaplib.IMAP4(HERE, port, timeout=IMAP_S)
    client.login(USER, password)
    return client


def _append(port: int, password: str, mail: bytes) -> None:
    with _signed_in(port, password) as client:
        done, said = client.append("INBOX", "", "", mail)
        if done != "OK":
            problem = f"the IMAP server takes no mail: {said!r}"
            raise DemoError(problem)


def _unseen(port: int, password: str) -> int:
    with _signed_in(port, password) as client:
        client.select("INBOX", readonly=True)
        _, found = client.search(None, "UNSEEN")
        return len(cast("bytes", found[0]).split())


def _posted(folder: Path) -> list[EmailMessage]:
    files = sorted((folder / "new").glob("*")) if folder.exists() else []
    read = (email.message_from_bytes(each.read_bytes(), policy=default) for each in files)
    return list(read)
