"""Real mails, and cases written by hand, from ``../shared/data`` where it is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from fixtures.mail import settings
from upright.api import ActorKind, Trigger
from upright.core.trigger import People, Person, origin
from upright.kit.calendar.itip import Memory
from upright_mail.keys import Keys
from upright_mail.meetings import Meetings
from upright_mail.mime import read
from upright_mail.quotes import own_words
from upright_mail.settings import MailSettings
from upright_mail.translate import Arrived, Translator

DATA: Final = Path(__file__).parents[3] / "shared" / "data"
ABSENT: Final = "corpus: shared/data does not lie beside the checkout"
needs_corpus = pytest.mark.skipif(not DATA.is_dir(), reason=ABSENT)
FLOOR: Final = 0.97

NO_MAILS: Final = ("zapier-email-reply-parser", "mail-parser-reply", "html_replies", "signature")
# Not whole mails: bodies, and forms of a canonicalisation; they are read as texts elsewhere.
NO_MAIL_NAMES: Final = ("purpose.", "readme", "nofws.", "relaxed.", "simple.", "body.")
NOBODYS: Final = frozenset(
    # Parts and templates: no From line at all, so that nobody can have sent them.
    f"eml/{path}"
    for path in (
        "mailgun-flanker/attached-pdf.eml",
        "mailgun-flanker/bounce/delayed-broken.eml",
        "mikel-mail/error_emails/bad_encoded_subject.eml",
        "mimekit/messages/delivery-status-multiple-blank-lines.txt",
        "mimekit/messages/delivery-status2.txt",
        "mimekit/messages/multipart-related-mhtml.txt",
        "nodemailer-mailparser/mixed.eml",
    )
)
# Mails that give no full trigger, each with its reason.
POOR: Final[dict[str, str]] = {}
AT: Final = datetime(2026, 6, 1, 9, 30, tzinfo=UTC)  # when the server took it; it always says so


def mails() -> list[Path]:
    found = [path for path in sorted((DATA / "eml").rglob("*")) if path.is_file() and whole(path)]
    return found or [DATA]


def whole(path: Path) -> bool:
    return not any(part in NO_MAILS for part in path.parts) and not path.name.startswith(
        NO_MAIL_NAMES
    )


def cases() -> list[Path]:
    return sorted((DATA / "made").glob("mail-*.expected.json")) or [DATA]


def name(path: Path) -> str:
    return path.relative_to(DATA).as_posix()


def translated(raw: bytes, using: MailSettings | None = None) -> Trigger:
    made = Translator("post", using or settings()).trigger(read(raw), Arrived(at=AT))
    assert made is not None
    return made


def lacks(trigger: Trigger) -> list[str]:
    """Say what a trigger lacks of a full one."""
    content = trigger.content
    said = content.title + content.text + content.full + trigger.actor.name
    broken = trigger.raw.count("\ufffd".encode())  # as the mail itself has them
    parts = {
        "sender": not trigger.actor.id.endswith("unknown"),
        "time": trigger.occurred_at is not None,
        "content": bool(content.title or content.text or content.attachments),
        "whole characters": said.count("\ufffd") <= 2 * broken,
        "decoded words": "=?" not in content.title + trigger.actor.name,
    }
    return [part for part, there in parts.items() if not there]


@needs_corpus
@pytest.mark.feature("mail.guard")
@pytest.mark.parametrize("path", mails(), ids=name)
def test_no_mail_defeats_the_parser(path: Path) -> None:
    trigger = translated(path.read_bytes())
    assert trigger.kind.startswith("mail.")
    assert trigger.dedupe
    assert trigger.context.thread.startswith("mail:post/")
    assert trigger.raw == path.read_bytes()
    json.dumps([trigger.content.title, trigger.content.text, *trigger.context.facts]).encode()


@needs_corpus
@pytest.mark.feature("mail.guard")
def test_nearly_all_mails_give_a_full_trigger() -> None:
    sent = [path for path in mails() if name(path) not in NOBODYS]
    poor = {name(path): lacks(translated(path.read_bytes())) for path in sent}
    assert {path: what for path, what in poor.items() if what and path not in POOR} == {}
    assert len(POOR) <= len(sent) * (1 - FLOOR)


@needs_corpus
@pytest.mark.parametrize("path", mails(), ids=name)
def test_nobody_is_nobody(path: Path) -> None:
    nobody = translated(path.read_bytes()).actor.id == "unverified:unknown"
    assert nobody == (name(path) in NOBODYS)


# ------------------------------------------------------------------ made
def loaded(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_bytes())
    return value


def people(setup: dict[str, Any]) -> People:
    persons = (
        Person(name=address, kind=ActorKind(kind), ids=frozenset({f"*:{address}"}))
        for address, kind in setup["people"].items()
    )
    return People.of(tuple(persons))


def plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


@needs_corpus
@pytest.mark.feature("mail.threading", "mail.stripping", "mail.loops", "mail.guard")
@pytest.mark.parametrize("path", cases(), ids=name)
def test_a_made_case_is_as_it_is_expected(path: Path) -> None:
    case = loaded(path)
    setup = case["setup"]
    using = settings(addresses=tuple(setup["own_addresses"]))
    made = {
        one["n"]: translated((path.parent / one["file"]).read_bytes(), using)
        for one in case["deliveries"]
    }
    wanted = case["expected"]["triggers"]
    assert len(wanted) == len(made)
    for one in wanted:
        check(made[one["from"][0]], one, people(setup))
    for one in wanted:
        for other in wanted:
            same = one["thread_key"] == other["thread_key"]
            threads = {made[each["from"][0]].context.thread for each in (one, other)}
            assert (len(threads) == 1) == same


def check(trigger: Trigger, wanted: dict[str, Any], known: People) -> None:
    content, context = trigger.content, trigger.context
    actor = origin(trigger, "post", known).actor
    assert trigger.channel == wanted["channel"]
    assert trigger.kind == wanted["kind"]
    assert {"id": actor.id, "name": actor.name, "kind": actor.kind}.items() >= wanted[
        "actor"
    ].items()
    assert trigger.dedupe == (f"id:{wanted['dedupe_key']['message_id']}",)
    assert context.address == wanted["address"]
    assert context.edit_of == (wanted["edit_of"] or "")
    root = wanted["thread_key"]["root_message_id"]
    keys = (context.thread, *context.joins)
    assert {Keys("post").of(root), Keys("post").under(root, content.title)} & set(keys)
    if "reply_to" in wanted:
        assert context.thread == Keys("post").of(wanted["reply_to"]["message_id"])
    if "reply_expected" in wanted:
        assert content.expects_reply == wanted["reply_expected"]
        assert (context.reply_to is not None) == wanted["may_be_answered"]
    if "occurred_at" in wanted:
        assert trigger.occurred_at == datetime.fromisoformat(wanted["occurred_at"])
    check_texts(trigger, wanted)


def check_texts(trigger: Trigger, wanted: dict[str, Any]) -> None:
    content = trigger.content
    full = content.full or content.text
    assert content.title == wanted.get("title", wanted.get("title_best", content.title))
    assert plain(full) == plain(wanted.get("text_full", full))
    assert plain(content.text) == plain(wanted.get("text_best", content.text))
    assert all(part in full for part in wanted.get("text_must_contain", ()))
    stripped = wanted.get("text_stripped", {"must_contain": (), "must_not_contain": ()})
    assert all(part in content.text for part in stripped["must_contain"])
    assert not any(part in content.text for part in stripped["must_not_contain"])


def invitations() -> list[Path]:
    found = sorted((DATA / "made").glob("itip-*.expected.json"))
    return found or [DATA]


def meetings(case: Path, order: list[int]) -> list[Trigger]:
    """Hear the mails of a case in some order."""
    setup, followed = loaded(case)["setup"], Meetings("Europe/Lisbon", Memory())
    using, found = settings(addresses=tuple(setup["own_addresses"])), list[Trigger]()
    for number in order:
        raw = (case.parent / case.name.replace("expected.json", f"{number}.eml")).read_bytes()
        found += followed.told(translated(raw, using), read(raw).calendar)
    return found


@needs_corpus
@pytest.mark.feature("calendar.invitations", "mail.guard")
@pytest.mark.case("TU/5732")
@pytest.mark.parametrize("path", invitations(), ids=name)
def test_an_invitation_by_mail_is_news_of_its_meeting(path: Path) -> None:
    case = loaded(path)
    known = people(case["setup"])
    made = meetings(path, [one["n"] for one in case["deliveries"]])
    for trigger, wanted in zip(made, case["expected"]["triggers"], strict=True):
        told = dict(trigger.context.facts)
        actor = origin(trigger, "post", known).actor
        assert (trigger.channel, trigger.kind) == (wanted["channel"], wanted["kind"])
        assert (actor.id, actor.kind) == (wanted["actor"]["id"], wanted["actor"]["kind"])
        assert trigger.context.thread == f"meeting:{wanted['thread_key']['uid']}"
        assert trigger.dedupe == (f"id:{wanted['dedupe_key']['message_id']}",)
        assert trigger.context.address == wanted["address"]
        assert trigger.content.title == wanted["title"]
        assert told["starts"] == wanted["start"]["utc"]
        assert trigger.occurred_at == datetime.fromisoformat(wanted["occurred_at"])
        edited = wanted["edit_of"]
        before = f"{edited['uid']}::{edited['dtstamp']}" if edited else ""
        assert trigger.context.edit_of == before
    natives = [dict(one.context.facts)["native_id"] for one in made]
    assert [one.context.edit_of for one in made[1:]] == natives[:-1]


@needs_corpus
@pytest.mark.feature("calendar.invitations")
@pytest.mark.parametrize("path", invitations(), ids=name)
def test_an_older_word_about_a_meeting_stays_a_mail(path: Path) -> None:
    late, *_ = loaded(path)["expected"]["other_orders"]
    *_, last = meetings(path, late["order"])
    assert (last.channel, last.kind) == ("mail", "mail.received")
    assert "older" in dict(last.context.facts)["calendar_ignored"]


# ------------------------------------------------------------------ bodies of replies
def body(path: str) -> str:
    return (DATA / "eml" / path).read_text(encoding="utf-8")


OWN_WORDS: Final = {
    "zapier-email-reply-parser/email_1_3.txt": "great.\n\n-Abhishek Kona",
    "zapier-email-reply-parser/email_1_6.txt": "I get proper rendering as well.",
    "zapier-email-reply-parser/email_1_7.txt": ":+1:",
    "zapier-email-reply-parser/email_1_8.txt": "and under this.",  # answers between the lines
    "zapier-email-reply-parser/email_blackberry.txt": "Here is another email",
    "zapier-email-reply-parser/email_bullets.txt": "   - and another",
    "zapier-email-reply-parser/email_sent_from_my_not_signature.txt": "my mobile phone.",
    "zapier-email-reply-parser/greedy_on.txt": "the tunnel is not working.",
    "mail-parser-reply/email_danish_1.txt": "Anders Andersen",
    "mail-parser-reply/email_danish_2.txt": "Søren",
    "mail-parser-reply/email_danish_3.txt": "Svar.",
    "mail-parser-reply/email_danish_4.txt": "Svar.",
    "mail-parser-reply/email_ja_1_2.txt": "以上、よろしくお願いいたします",
    "mail-parser-reply/email_swedish_2.txt": "/John",
    "mail-parser-reply/multi_header.txt": "just start a new order.",
    "mail-parser-reply/outlook.txt": "My number is: +00 0000 000 000",
}


@needs_corpus
@pytest.mark.feature("mail.stripping")
@pytest.mark.parametrize("path", OWN_WORDS)
def test_own_words_end_where_they_end(path: str) -> None:
    assert own_words(body(path)).endswith(OWN_WORDS[path])


@needs_corpus
@pytest.mark.feature("mail.stripping")
def test_answers_between_the_lines_survive() -> None:
    said = own_words(body("zapier-email-reply-parser/email_1_8.txt"))
    assert "I will reply under this one" in said
    assert "> okay?" in said
    assert "this is my signature" not in said


@needs_corpus
@pytest.mark.feature("mail.stripping")
@pytest.mark.parametrize("client", ["apple_mail", "hotmail", "outlook", "yahoo"])
def test_what_a_mail_program_quotes_is_no_own_word(client: str) -> None:
    raw = (DATA / "eml" / "mailgun-talon" / "standard_replies" / f"{client}.eml").read_bytes()
    assert translated(raw).content.text == "Hello"


@needs_corpus
@pytest.mark.feature("mail.stripping", "mail.guard")
@pytest.mark.parametrize("client", ["ms_outlook_2003", "ms_outlook_2010", "thunderbird"])
def test_what_is_quoted_in_html_is_no_own_word(client: str) -> None:
    html = body(f"mailgun-talon/html_replies/{client}.html")
    head = "From: a@example.org\nContent-Type: text/html; charset=utf-8\n\n"
    text = translated((head + html).encode()).content.text
    assert text.startswith("Hi. I am fine.")
    assert text.endswith("Alex")
