"""Texts: charsets, names, bodies and quotes, whatever a mail program made of them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.mail import facts, mail, settings, told
from upright_mail.bodies import html_text, tidy, unflowed
from upright_mail.charset import decode, header_text
from upright_mail.mime import read
from upright_mail.quotes import own_words


@pytest.mark.feature("mail.guard")
@pytest.mark.parametrize(
    ("raw", "declared", "text"),
    [
        ("Grüße".encode(), "utf-8", "Grüße"),
        ("Grüße".encode(), "us-ascii", "Grüße"),
        ("Grüße".encode("latin-1"), "utf-8", "Grüße"),
        ("møte \u2013 «x»".encode("cp1252"), "x-unknown", "møte \u2013 «x»"),
        ("møte \u2013 «x»".encode("cp1252"), "iso-8859-1", "møte \u2013 «x»"),
        ("小喆".encode("gb18030"), "gb2312", "小喆"),
        ("똠방각하".encode("cp949"), "ks_c_5601-1987", "똠방각하"),
        ("①会議".encode("cp932"), "shift_jis", "①会議"),
        ("\u00e9".encode("cp850"), "cp-850", "\u00e9"),
        ("Grüße".encode(), "unicode_escape", "Grüße"),
        ("Grüße".encode(), "hex", "Grüße"),
        ("Grüße".encode(), "utf-8\0", "Grüße"),
        (b"", "x", ""),
    ],
)
def test_a_charset_that_is_unknown_or_lies_loses_nothing(
    raw: bytes, declared: str, text: str
) -> None:
    assert decode(raw, declared) == text


@pytest.mark.feature("mail.guard")
def test_without_a_label_a_longer_text_is_guessed() -> None:
    text = "Завтра в десять часов мы переносим сервер, поэтому почта некоторое время не работает. "
    assert decode((text * 8).encode("cp1251"), "x-unknown") == text * 8


@pytest.mark.feature("mail.guard")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("=?utf-8?Q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
        ("Re: =?utf-8?B?R3LDvMOfZQ==?= (x)", "Re: Grüße (x)"),
        ("=?utf-8?B?R3LD?=\r\n =?utf-8?B?vMOfZQ==?=", "Grüße"),  # cut inside a character
        ("=?utf-8?Q?a?= =?iso-8859-1?Q?=FC?=", "aü"),
        ("=?utf-8?B?R3LDvMOfZQ?=", "Grüße"),  # padding left out
        ("=?utf-8*de?Q?a_b?=", "a b"),
        ("=?none?Q?a?=", "a"),
        ("=?utf-8?Q?a b?=", "a b"),  # a blank that may not be there
        ("Gr\udcc3\udcbc\udcc3\udc9fe", "Grüße"),  # raw UTF-8, as the parser leaves it
        ("Gr\udcfc\udcdfe", "Grüße"),  # raw windows-1252
        ("a\r\n\tb", "a\tb"),
        ("=?", "=?"),
    ],
)
def test_a_header_is_read_as_people_read_it(value: str, text: str) -> None:
    assert header_text(value) == text


@given(st.binary(max_size=2000))
def test_no_bytes_defeat_the_reader(raw: bytes) -> None:
    trigger = told(raw)
    assert trigger.raw == raw
    trigger.content.text.encode()
    trigger.content.title.encode()


@given(st.text(max_size=400), st.sampled_from(["", "> ", "On 1 May 2026, Ann wrote:\n"]))
def test_own_words_are_never_nothing_where_something_was_said(text: str, before: str) -> None:
    said = tidy(before + text)
    assert bool(own_words(said)) == bool(said)


@pytest.mark.feature("mail.guard")
def test_a_mail_that_is_nested_beyond_reason_is_read_as_far_as_it_goes() -> None:
    parts = "".join(
        f"Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n" for n in range(3000)
    )
    trigger = told(b"From: ann@example.org\r\nSubject: deep\r\n" + parts.encode())
    assert trigger.content.title == "deep"


@pytest.mark.feature("mail.cap")
def test_thousands_of_addresses_cost_little() -> None:
    many = ",\r\n ".join(f'"Somebody {n}" <p{n}@example.org>' for n in range(4000))
    began = time.process_time()
    trigger = told(mail(Cc=many))
    assert time.process_time() - began < 5  # the new parser of the library takes minutes for some
    assert len(facts(trigger)["cc"]) <= 500


@pytest.mark.feature("mail.cap")
@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('attachment; filename="a b.pdf"', "a b.pdf"),
        ("attachment; filename*=utf-8''pl%C3%A4n.pdf", "plän.pdf"),
        ("attachment; filename*0=very-; filename*1=long.pdf", "very-long.pdf"),
        ('attachment; filename="=?utf-8?Q?pl=C3=A4n.pdf?="', "plän.pdf"),
        ('attachment; filename="../../etc/passwd"', "passwd"),
        ('attachment; filename="C:\\\\x\\\\y.exe"', "y.exe"),
        ("attachment; filename*=x-none''a.pdf", "a.pdf"),
        ("attachment", "application/pdf"),
    ],
)
def test_an_attachment_has_its_name_whoever_wrote_it(line: str, name: str) -> None:
    body = (
        "--x\nContent-Type: text/plain\n\nhi\n"
        f"--x\nContent-Type: application/pdf\nContent-Disposition: {line}\n\nx\n--x--"
    )
    trigger = told(mail(body, Content_Type='multipart/mixed; boundary="x"'))
    assert trigger.content.attachments == (name,)
    assert trigger.content.text == "hi"


@pytest.mark.feature("mail.guard")
def test_of_alternatives_the_plain_text_is_taken_and_of_html_alone_its_text() -> None:
    both = (
        "--x\nContent-Type: text/html\n\n<p>html</p>\n--x\nContent-Type: text/plain\n\nplain\n--x--"
    )
    kind = 'multipart/alternative; boundary="x"'
    assert told(mail(both, Content_Type=kind)).content.text == "plain"
    html = mail("<p>Hello <b>you</b></p><style>p{}</style>", Content_Type="text/html")
    assert told(html).content.text == "Hello you"


@pytest.mark.feature("mail.guard")
def test_quotations_in_html_are_marked_like_those_in_plain_text() -> None:
    source = (
        "<p>mine</p><blockquote>theirs<blockquote>older</blockquote></blockquote><p>mine, too</p>"
    )
    lines = [line for line in html_text(source).split("\n") if line.strip("> ")]
    assert [line.strip() for line in lines] == ["mine", "> theirs", ">> older", "mine, too"]
    assert own_words(tidy(html_text("<p>Yes.</p><blockquote>Will you?</blockquote>"))) == "Yes."


@pytest.mark.feature("mail.guard")
def test_flowed_text_is_joined() -> None:
    text = "A line that \ngoes on.\n> quoted \n> too\n-- \nme"
    assert unflowed(text).split("\n") == ["A line that goes on.", "> quoted too", "-- ", "me"]


@pytest.mark.feature("mail.guard")
def test_an_invitation_says_its_method_and_is_kept_whole() -> None:
    body = (
        "--x\nContent-Type: text/plain\n\nYou are invited.\n"
        "--x\nContent-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR\nEND:VCALENDAR\n--x--"
    )
    raw = mail(body, Content_Type='multipart/alternative; boundary="x"')
    trigger = told(raw)
    assert facts(trigger)["calendar"] == "REQUEST"
    assert trigger.content.text == "You are invited."
    calendar = read(raw).calendar
    assert calendar is not None
    assert calendar.body.startswith(b"BEGIN:VCALENDAR")


HOSTILE = {
    "comments": mail("<!--" * 50_000, Content_Type="text/html"),
    "styles": mail("<style>" * 50_000, Content_Type="text/html"),
    "blockquotes": mail("<blockquote>" * 20_000, Content_Type="text/html"),
    "tags": mail("<" * 200_000, Content_Type="text/html"),
    "heads": mail("On 1 x wrote\n" * 5_000),
    "dashes": mail(("-" * 30_000 + "\n") * 5),
    "words": mail(Subject="=?utf-8?Q?a" * 6_000),
    "strings": mail(Authentication_Results="mx;" + '"\\' * 30_000),
    "ids": mail(References="<" * 60_000),
    "addresses": mail(To="a@" * 30_000),
}


@pytest.mark.feature("mail.guard")
@pytest.mark.parametrize("attack", HOSTILE)
def test_no_mail_takes_long_to_read(attack: str) -> None:
    using = settings(authserv_id="mx")
    began = time.process_time()
    told(HOSTILE[attack], using)
    assert time.process_time() - began < 5  # each took a minute, or would in a wrong pattern
