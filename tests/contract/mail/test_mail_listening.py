"""Listening, against a real Dovecot: pushed, in order, once, and no flag is touched."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fixtures.answering import answered_by
from fixtures.black_hole import black_hole
from fixtures.dovecot import Dovecot, Postbox, serving
from fixtures.eventually import eventually
from fixtures.mail import ANN, context, facts, settings
from fixtures.postbox import letter, listening, put, texts, using
from upright.api import ConnectorAuthFailedError, ConnectorNotReadyError, Trigger
from upright.kit.late import FACT
from upright.testing.context import MemoryContext
from upright_mail import cursor
from upright_mail.connector import MailConnector
from upright_mail.settings import ServerSettings, Tls

CURSOR_LOST = "mail.cursor_lost"


def is_late(trigger: Trigger) -> bool:
    return FACT in trigger.context.facts


@pytest.mark.feature("mail.idle")
@pytest.mark.clause("B1.1")
async def test_a_mail_is_pushed_not_polled(postbox: Postbox) -> None:
    memory = context()
    async with listening(using(postbox, idle_s=30.0, timeout_s=20.0), memory):
        await put(postbox, letter("hello"))
        (told,) = await memory.until(1, within_s=15)  # well below idle_s
    assert told.content.text == "hello"
    assert not is_late(told)


@pytest.mark.feature("mail.idle")
async def test_a_server_without_idle_is_polled() -> None:
    with serving("imap_capability = IMAP4rev1 UIDPLUS\n") as server:
        postbox, memory = Postbox(server), context()
        async with listening(using(postbox, poll_s=60.0), memory):
            await memory.until_asleep()
            await put(postbox, letter("hello"))
            memory.pass_time(61)
            (told,) = await memory.until(1)
    assert told.content.text == "hello"


@pytest.mark.feature("mail.peek")
async def test_reading_sets_no_flag(postbox: Postbox) -> None:
    memory = context()
    await put(postbox, letter("old"))
    async with listening(using(postbox), memory):
        await put(postbox, letter("new"), letter("Re: old", Subject="Re: The harbor clock"))
        await memory.until(2)
    after = await asyncio.to_thread(postbox.flags)
    assert list(after.values()) == [(), (), ()]


@pytest.mark.feature("mail.cursor")
async def test_every_folder_is_heard(postbox: Postbox) -> None:
    with postbox.client() as client:
        client.create_folder("Lists")
    memory = context()
    async with listening(using(postbox, folders=("INBOX", "Lists")), memory):
        await eventually(lambda: {"INBOX", "Lists"} == cursor.load(memory.cursors[-1])[0].keys())
        await put(postbox, letter("in the inbox"))
        await put(postbox, letter("in the lists"), folder="Lists")
        found = await memory.until(2)
    assert {(one.content.text, facts(one)["folder"]) for one in found} == {
        ("in the inbox", "INBOX"),
        ("in the lists", "Lists"),
    }


@pytest.mark.feature("mail.catch_up")
async def test_a_history_is_no_news(postbox: Postbox) -> None:
    await asyncio.to_thread(postbox.fill, *(letter(f"old {n}") for n in range(50)))
    memory = context()
    async with listening(using(postbox), memory):
        await put(postbox, letter("new"))
        await memory.until(1)
    assert texts(memory.emitted) == ["new"]


# ------------------------------------------------------------------ the cursor
class Breaking(MemoryContext):
    """Its store fails once."""

    broken = False

    async def emit(self, triggers: Sequence[Trigger], *, cursor: str | None = None) -> None:
        if triggers and not self.broken:
            type(self).broken = True
            raise OSError("the disk is full")
        await super().emit(triggers, cursor=cursor)


@pytest.mark.feature("mail.cursor")
@pytest.mark.clause("B1.6")
async def test_the_cursor_does_not_pass_what_was_not_stored(postbox: Postbox) -> None:
    memory = Breaking(source="post", secrets=context().secrets, hurries=False)
    connector = MailConnector("post", using(postbox))
    await connector.start(memory)

    async def say() -> None:
        await memory.until_cursor()
        await put(postbox, letter("hello"))

    async with asyncio.TaskGroup() as group:
        group.create_task(say())
        with pytest.raises(ExceptionGroup):
            await connector.listen()
    await connector.stop(5.0)
    assert memory.accepted == []
    async with listening(using(postbox), memory):
        (told,) = await memory.until(1)
    assert is_late(told)


@pytest.mark.feature("mail.cursor")
async def test_in_a_renumbered_folder_the_place_is_found_by_message_ids(
    lone_dovecot: Dovecot, caplog: pytest.LogCaptureFixture
) -> None:
    postbox, memory = Postbox(lone_dovecot), context()
    await asyncio.to_thread(postbox.fill, *(letter(f"old {n}") for n in range(3)))
    async with listening(using(postbox), memory):
        await put(postbox, letter("heard"))
        await memory.until(1)
    validity = cursor.load(memory.cursors[-1])[0]["INBOX"].validity
    await asyncio.to_thread(lone_dovecot.stop)
    postbox.renumber()
    await asyncio.to_thread(lone_dovecot.start)
    await put(postbox, letter("missed"))
    async with listening(using(postbox), memory):
        await memory.until(2)
        await put(postbox, letter("afterwards"))
        found = await memory.until(3)
    assert texts(found) == ["heard", "missed", "afterwards"]
    assert [is_late(one) for one in found] == [False, True, False]
    assert len(memory.emitted) == 3
    assert cursor.load(memory.cursors[-1])[0]["INBOX"].validity != validity
    assert [one.getMessage() for one in caplog.records].count("mail.renumbered") == 1


@pytest.mark.feature("mail.cursor")
async def test_in_a_folder_from_an_older_backup_the_place_is_found_by_message_ids(
    postbox: Postbox,
) -> None:
    memory = context()
    async with listening(using(postbox), memory):
        await put(postbox, letter("heard"))
        await memory.until(1)
    marks, known = cursor.load(memory.cursors[-1])
    ahead = {name: replace(mark, uid=mark.uid + 1000) for name, mark in marks.items()}
    memory.cursors.append(cursor.dump(ahead, known))
    await put(postbox, letter("missed"))
    async with listening(using(postbox), memory):
        await memory.until(2)
        await put(postbox, letter("afterwards"))
        found = await memory.until(3)
    assert texts(found) == ["heard", "missed", "afterwards"]
    assert len(memory.emitted) == 3


@pytest.mark.feature("mail.cursor", "common.health")
async def test_another_mailbox_in_its_place_is_a_gap_and_no_news(
    lone_dovecot: Dovecot, caplog: pytest.LogCaptureFixture
) -> None:
    postbox, memory = Postbox(lone_dovecot), context()
    async with listening(using(postbox), memory):
        await put(postbox, letter("heard"))
        await memory.until(1)
    await asyncio.to_thread(lone_dovecot.stop)
    postbox.renumber()
    for path in [*(postbox.home / "new").iterdir(), *(postbox.home / "cur").iterdir()]:
        path.unlink()
    await asyncio.to_thread(lone_dovecot.start)
    await asyncio.to_thread(postbox.fill, *(letter(f"another {n}") for n in range(3)))
    stored = len(memory.cursors)
    async with listening(using(postbox), memory) as (connector, _):
        await eventually(lambda: len(memory.cursors) > stored)
        await put(postbox, letter("now"))
        found = await memory.until(2)
        assert "INBOX" in connector.health().gap
    assert texts(found) == ["heard", "now"]
    assert [one.getMessage() for one in caplog.records].count(CURSOR_LOST) == 1


@pytest.mark.feature("mail.cursor", "mail.catch_up", "common.health")
@pytest.mark.parametrize(
    "said", ["", "{}", '{"v":9,"folders":{}}', '{"v":1,"folders":{"INBOX":1}}']
)
async def test_a_lost_cursor_is_a_gap_and_no_news(
    postbox: Postbox, caplog: pytest.LogCaptureFixture, said: str
) -> None:
    await put(postbox, letter("old"))
    memory = context()
    memory.cursors.append(said)
    async with listening(using(postbox), memory) as (connector, _):
        await eventually(lambda: len(memory.cursors) > 1)
        await put(postbox, letter("new"))
        await memory.until(1)
        assert connector.health().gap
        assert connector.health().heard_at == memory.at
    assert texts(memory.emitted) == ["new"]
    assert [one.getMessage() for one in caplog.records].count(CURSOR_LOST) == 1


# ------------------------------------------------------------------ the line
@pytest.mark.feature("mail.idle")
@pytest.mark.case("AIO/110")
async def test_a_black_hole_is_noticed_and_what_it_hid_is_heard(postbox: Postbox) -> None:
    memory = context()
    async with black_hole(postbox.server.port) as hole:
        keys = using(postbox, port=hole.port, idle_s=0.2, timeout_s=1.0)
        async with listening(keys, memory) as (_, task):
            hole.swallows = True
            await put(postbox, letter("hidden"))
            async with asyncio.timeout(10):
                assert "no answer" in await task
        hole.swallows = False
        hole.cut()
        async with listening(keys, memory):
            (told,) = await memory.until(1)
    assert told.content.text == "hidden"
    assert is_late(told)


@pytest.mark.feature("mail.idle")
def test_with_the_settings_as_they_are_a_dead_line_is_noticed_within_a_minute() -> None:
    plain = settings()
    with pytest.raises(ValueError, match="together at most 60"):
        replace(plain, idle_s=50.0, timeout_s=20.0)


@pytest.mark.feature("mail.idle")
@pytest.mark.case("AIO/110")
async def test_a_server_that_says_goodbye_is_gone(lone_dovecot: Dovecot) -> None:
    postbox, memory = Postbox(lone_dovecot), context()
    async with listening(using(postbox, idle_s=30.0, timeout_s=20.0), memory) as (_, task):
        await asyncio.to_thread(lone_dovecot.stop)
        async with asyncio.timeout(15):
            assert await task
    await asyncio.to_thread(lone_dovecot.start)
    async with listening(using(postbox), memory):
        await put(postbox, letter("hello"))
        await memory.until(1)


ANSWERS = {
    b"EXAMINE": b"* 0 EXISTS\r\n* OK [UIDVALIDITY 1] x\r\n* OK [UIDNEXT 1] x\r\n",
    b"UID": b"* SEARCH\r\n",
    b"CAPABILITY": b"* CAPABILITY IMAP4rev1 IDLE\r\n",
}


async def chatter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Play a server that never comes to an end once it is asked to stop."""
    writer.write(b"* OK ready\r\n")
    while line := await reader.readline():
        tag, command, *_ = *line.split(), b""
        if command == b"IDLE":
            writer.write(b"+ idling\r\n")
            await reader.readline()
            await flood(writer)
        writer.write(ANSWERS.get(command, b"") + tag + b" OK done\r\n")


async def flood(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"* OK still here\r\n")
        await writer.drain()
        await asyncio.sleep(0)


async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Play a server that says yes to everything, and nothing else."""
    writer.write(b"* OK [CAPABILITY IMAP4rev1 IDLE] ready\r\n")
    while line := await reader.readline():
        writer.write(line.split()[0] + b" OK done\r\n")


async def test_a_server_that_talks_nonsense_is_not_ready(postbox: Postbox) -> None:
    memory = context()
    async with answered_by(nonsense) as port:
        connector = MailConnector("post", using(postbox, port=port))
        await connector.start(memory)
        with pytest.raises(ConnectorNotReadyError, match="can't be read"):
            await connector.listen()
        await connector.stop(5.0)


@pytest.mark.feature("mail.idle")
async def test_a_server_that_never_stops_talking_is_given_up(postbox: Postbox) -> None:
    memory = context()
    async with answered_by(chatter) as port:
        keys = using(postbox, port=port, idle_s=0.3, timeout_s=0.5)
        async with listening(keys, memory) as (_, task), asyncio.timeout(15):
            assert "no answer" in await task


async def test_a_wrong_password_is_a_matter_for_a_person(postbox: Postbox) -> None:
    memory = context()
    memory.secrets = dict.fromkeys(memory.secrets, "another")
    with pytest.raises(ConnectorAuthFailedError, match="refuses the user or the password"):
        await MailConnector("post", using(postbox)).start(memory)


# ------------------------------------------------------------------ sizes, subjects
@pytest.mark.feature("mail.cap")
async def test_of_a_huge_mail_the_beginning_is_read_and_what_is_attached_named(
    postbox: Postbox,
) -> None:
    parts = [
        "--x\nContent-Type: text/plain\n\nThe plans are attached.\n",
        *(
            f'--x\nContent-Type: application/pdf; name="plan {n}.pdf"\n'
            f"Content-Disposition: attachment; filename*=utf-8''pl%C3%A4n-{n}.pdf\n\n"
            + "x" * 70
            + "\n" * 40_000
            for n in range(2)
        ),
        "--x--",
    ]
    huge = letter("\n".join(parts), Content_Type='multipart/mixed; boundary="x"')
    memory = context()
    async with listening(using(postbox, max_mail_bytes=8192), memory):
        await put(postbox, huge, letter("small"))
        first, second = await memory.until(2)
    assert first.content.text == "The plans are attached."
    assert len(first.raw) == 8192
    assert facts(first)["truncated"] == "yes"
    assert {"plan 1.pdf", "plän-1.pdf"} & set(first.content.attachments)
    assert "truncated" not in facts(second)


@pytest.mark.feature("mail.threading")
async def test_where_a_mail_names_nothing_its_subject_and_sender_tell_what_it_answers(
    postbox: Postbox,
) -> None:
    memory = context()
    async with listening(using(postbox), memory):
        await put(
            postbox,
            letter("first", Message_ID="<first@example.org>"),
            letter("by another", From="eve@example.net", Message_ID="<eve@example.net>"),
            letter("answer", Subject="AW: The  harbor clock"),
        )
        _, _, told = await memory.until(3)
    assert facts(told)["resembles"] == "<first@example.org>"
    assert told.context.thread == "mail:post/<first@example.org>"
    assert told.actor.id == ANN


async def test_it_says_what_it_can_do(postbox: Postbox) -> None:
    connector = MailConnector("post", using(postbox))
    memory = context()
    await connector.start(memory)
    probe = await connector.validate()
    await connector.stop(5.0)
    assert probe.ok
    assert probe.scopes == ("read",)
    able = connector.capabilities()
    assert able.listens
    assert not able.destinations


def test_a_password_never_travels_in_clear() -> None:
    with pytest.raises(ValueError, match="in clear"):
        ServerSettings(host="mail.example.org", tls=Tls.NONE)
