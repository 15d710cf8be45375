"""Senders: who From says counts only where our own server vouches for it; robots get no answer."""

from __future__ import annotations

import pytest

from fixtures.mail import ANN, US, facts, mail, settings, told
from upright.api import ActorKind, Address, Trigger
from upright.core.trigger import People, Person, origin
from upright_mail.budget import Budget
from upright_mail.keys import own_id
from upright_mail.mime import read
from upright_mail.settings import Senders
from upright_mail.translate import Arrived, Translator

MX = "mx.harbor.example.org"
STRICT = settings(senders=Senders.VERIFIED, authserv_id=MX)
KNOWN = People.of((Person(name="ann", kind=ActorKind.OPERATOR, ids=frozenset({f"*:{ANN}"})),))
OURS = own_id("key", "<m@x.org>", "harbor.example.org")


def kind(trigger: Trigger) -> ActorKind:
    return origin(trigger, "post", KNOWN).actor.kind


GOOD = [
    f"{MX}; dmarc=pass header.from=example.org",
    f"{MX}; spf=fail smtp.mailfrom=b.net; dmarc=pass (p=none) header.from=example.org",
    f"{MX};\r\n\tdkim=pass header.d=example.org header.s=a;\r\n\tspf=none",
    f'{MX} 1; dkim=pass header.i="@example.org"',
    f"{MX}; spf=pass (a comment; with (another)) smtp.mailfrom=bounce@example.org",
    f"{MX}; auth=pass smtp.auth={ANN}",
    f"{MX.upper()}; DMARC=PASS header.from=example.org",
]
NOT_GOOD = [
    "",
    f"{MX}; none",
    f"{MX}; dmarc=none; dkim=pass header.d=example.net",
    f"{MX}; dkim=pass header.d=ample.org",
    f"{MX}; dkim=pass header.d=example.org.evil.net",
    f"{MX}; spf=pass smtp.mailfrom=eve@example.net",
    f"{MX}; auth=pass smtp.auth=eve@example.org",
    "mx.evil.net; dmarc=pass header.from=example.org",
    f"{MX}.evil.net; dmarc=pass header.from=example.org",
    f"evil ({MX}); dmarc=pass header.from=example.org",
    f'{MX}; x="; dmarc=pass header.from=example.org"',
    f"{MX} (; dmarc=pass header.from=example.org",
]
FORGED = [
    f"{MX}; dmarc=fail header.from=example.org",
    f"{MX}; dmarc=pass header.from=example.net",
    f"{MX}; spf=softfail smtp.mailfrom=example.org",
]


@pytest.mark.feature("mail.trust")
@pytest.mark.parametrize("line", GOOD)
def test_our_servers_word_makes_a_sender_who_he_is(line: str) -> None:
    trigger = told(mail(Authentication_Results=line), STRICT)
    assert (trigger.actor.id, kind(trigger)) == (ANN, ActorKind.OPERATOR)
    assert facts(trigger)["verified"] == "yes"
    assert "spoof" not in facts(trigger)


@pytest.mark.feature("mail.trust")
@pytest.mark.clause("B1.3")
@pytest.mark.parametrize("line", NOT_GOOD)
def test_without_our_servers_word_a_sender_is_a_stranger(line: str) -> None:
    trigger = told(mail(Authentication_Results=line), STRICT)
    assert kind(trigger) is ActorKind.STRANGER
    assert facts(trigger)["verified"] == "no"
    assert trigger.actor.id == f"unverified:{ANN}"


@pytest.mark.feature("mail.trust")
@pytest.mark.parametrize("line", FORGED)
@pytest.mark.parametrize("senders", list(Senders))
def test_a_forged_sender_is_flagged(line: str, senders: Senders) -> None:
    using = settings(senders=senders, authserv_id=MX)
    trigger = told(mail(Authentication_Results=line), using)
    assert kind(trigger) is ActorKind.STRANGER
    assert facts(trigger)["spoof"] == "yes"


@pytest.mark.feature("mail.trust")
def test_a_line_that_came_in_with_the_mail_does_not_outweigh_ours() -> None:
    forged = f"Authentication-Results: {MX}; dmarc=pass header.from=example.org\r\n"
    ours = f"Authentication-Results: {MX}; dmarc=fail header.from=example.org\r\n"
    raw = ours.encode() + forged.encode() + mail()
    assert kind(told(raw, STRICT)) is ActorKind.STRANGER


@pytest.mark.feature("mail.trust")
@pytest.mark.parametrize(
    "raw",
    [
        b"From: eve@example.net\r\n" + mail(Authentication_Results=GOOD[0]),
        mail(From=f"{ANN}, eve@example.net", Authentication_Results=GOOD[0]),
    ],
)
def test_who_has_two_senders_is_verified_as_neither(raw: bytes) -> None:
    assert facts(told(raw, STRICT))["verified"] == "no"


@pytest.mark.feature("mail.trust")
def test_a_name_that_looks_like_an_address_is_no_address() -> None:
    trigger = told(mail(From=f'"{ANN}" <eve@example.net>'))
    assert (trigger.actor.id, kind(trigger)) == ("eve@example.net", ActorKind.STRANGER)


@pytest.mark.feature("mail.trust")
@pytest.mark.parametrize(
    ("allow", "heard"),
    [((), 1), ((ANN,), 1), (("@example.org",), 1), (("@ample.org",), 0), (("b@x.org",), 0)],
)
def test_only_who_is_allowed_is_heard(allow: tuple[str, ...], heard: int) -> None:
    made = Translator("post", settings(allow=allow)).trigger(read(mail()), Arrived())
    assert (made is not None) == bool(heard)


@pytest.mark.feature("mail.trust")
def test_an_allowed_name_that_nobody_vouches_for_is_not_heard() -> None:
    using = settings(senders=Senders.VERIFIED, authserv_id=MX, allow=(ANN,))
    assert Translator("post", using).trigger(read(mail()), Arrived()) is None


# ------------------------------------------------------------------ us
@pytest.mark.clause("B1.5")
def test_our_own_mail_is_ours_and_has_no_answer() -> None:
    trigger = told(mail(From=US))
    assert kind(trigger) is ActorKind.SELF
    assert trigger.context.reply_to is None


@pytest.mark.feature("mail.trust", "mail.loops")
def test_who_forges_our_own_address_is_a_stranger_and_has_no_answer() -> None:
    trigger = told(mail(From=US), STRICT)
    assert kind(trigger) is ActorKind.STRANGER
    assert facts(trigger)["spoof"] == "yes"
    assert trigger.context.reply_to is None


@pytest.mark.feature("mail.loops")
@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({"To": f"Hub <{US.upper()}>"}, Address.DIRECT),
        ({"To": f"a@x.org, {US}"}, Address.DIRECT),
        ({"To": "a@x.org", "Cc": US}, Address.NONE),
        ({"To": "undisclosed-recipients:;"}, Address.NONE),
        ({"To": f"Team: a@x.org, {US};"}, Address.DIRECT),
    ],
)
def test_to_us_is_direct_a_copy_is_not(headers: dict[str, str], address: Address) -> None:
    trigger = told(mail(**headers))
    assert trigger.context.address is address
    assert trigger.content.expects_reply == (address is Address.DIRECT)


def test_who_is_named_in_the_writers_own_words_is_mentioned() -> None:
    copy = {"To": "a@x.org", "Cc": US}
    assert told(mail("@hub, please look", **copy)).context.address is Address.MENTION
    assert told(mail("> @hub, please look\n\nNo.", **copy)).context.address is Address.NONE


# ------------------------------------------------------------------ robots
ROBOTS = [
    ("mail.auto_reply", {"Auto-Submitted": "auto-replied"}),
    ("mail.auto_reply", {"Auto-Submitted": "auto-replied (vacation); x=y"}),
    ("mail.auto_reply", {"Auto-Submitted": "auto-generated", "In-Reply-To": OURS}),
    ("mail.auto_reply", {"Precedence": "auto_reply"}),
    ("mail.auto_reply", {"X-Autoreply": "yes"}),
    ("mail.auto_reply", {"Return-Path": "<>", "In-Reply-To": OURS}),
    ("mail.notification", {"Auto-Submitted": "auto-generated"}),
    ("mail.notification", {"Auto-Submitted": "auto-notified"}),
    ("mail.notification", {"Return-Path": "<>"}),
    ("mail.bounced", {"Return-Path": "<>", "From": "MAILER-DAEMON@example.org"}),
]


@pytest.mark.feature("mail.loops")
@pytest.mark.case("FS/2445")
@pytest.mark.parametrize(("wanted", "headers"), ROBOTS)
def test_a_robot_gets_no_answer(wanted: str, headers: dict[str, str]) -> None:
    trigger = told(mail(**headers))
    assert trigger.kind == wanted
    assert trigger.context.reply_to is None
    assert not trigger.content.expects_reply
    assert (trigger.actor.kind is ActorKind.BOT) == (wanted == "mail.notification")


@pytest.mark.feature("mail.loops")
@pytest.mark.parametrize(
    "headers",
    [
        {"Auto-Submitted": "no"},
        {"X-Auto-Response-Suppress": "All"},
        {"Subject": "Automatic reply: are you there?"},
        {"Return-Path": f"<{ANN}>"},
        {"Precedence": "first-class"},
        {"X-Mailer": "robot 1.0"},
    ],
)
def test_a_person_is_no_robot(headers: dict[str, str]) -> None:
    trigger = told(mail(**headers))
    assert trigger.kind == "mail.received"
    assert trigger.context.reply_to is not None


@pytest.mark.feature("mail.loops")
@pytest.mark.parametrize(
    "headers",
    [{"List-Id": "<team.example.org>"}, {"Precedence": "bulk"}, {"List-Unsubscribe": "<x>"}],
)
def test_who_writes_by_a_list_is_a_person_and_gets_no_answer(headers: dict[str, str]) -> None:
    trigger = told(mail(**headers))
    assert trigger.kind == "mail.received"
    assert trigger.actor.kind is ActorKind.STRANGER
    assert trigger.context.reply_to is None
    assert facts(trigger)["list"]


@pytest.mark.feature("mail.loops")
@pytest.mark.case("FS/2445")
def test_what_comes_back_at_once_is_answered_once_an_hour() -> None:
    now = told(mail()).occurred_at
    assert now is not None
    budget = Budget(per_hour=12, prompt_s=20.0)
    budget.sent(("<a@x.org>", "<b@x.org>"), OURS, now)
    assert budget.is_prompt((OURS,), now)
    assert not budget.is_prompt(("<other@x.org>",), now)
    for known in ("<a@x.org>", "<b@x.org>", OURS):
        assert budget.wait_s((known, "<new@x.org>"), now, prompt=True) == 3600
        assert budget.wait_s((known,), now, prompt=False) == 0
    assert budget.wait_s(("<elsewhere@x.org>",), now, prompt=True) == 0
    assert budget.wait_s((), now, prompt=True) == 0
    place = told(mail(), arrived=Arrived(prompt=True)).context.reply_to
    assert place is not None
    assert place.get("prompt") == "yes"


# ------------------------------------------------------------------ reports
BOUNCE = (
    "--r\r\nContent-Type: text/plain\r\n\r\nIt could not be delivered.\r\n"
    "--r\r\nContent-Type: message/delivery-status\r\n\r\n"
    "Reporting-MTA: dns; mx.example.net\r\n\r\n"
    "Final-Recipient: rfc822; Bob@Example.net\r\nAction: failed\r\nStatus: 5.1.1\r\n"
    "Diagnostic-Code: smtp; 550 5.1.1 No such user\r\n\r\n"
    "--r\r\nContent-Type: text/rfc822-headers\r\n\r\n"
    f"Message-ID: {OURS}\r\nSubject: Re: x\r\n\r\n--r--"
)
RECEIPT = (
    "--r\r\nContent-Type: text/plain\r\n\r\nIt was read.\r\n"
    "--r\r\nContent-Type: message/disposition-notification\r\n\r\n"
    "Final-Recipient: rfc822; ann@example.org\r\n"
    f"Original-Message-ID: {OURS}\r\n"
    "Disposition: manual-action/MDN-sent-manually; displayed\r\n\r\n--r--"
)


def report(body: str) -> bytes:
    return mail(body.replace("\r\n", "\n"), Content_Type='multipart/report; boundary="r"')


@pytest.mark.feature("mail.bounces")
def test_a_bounce_is_known_and_tied_to_the_mail_that_came_back() -> None:
    trigger = told(report(BOUNCE), settings(allow=("@nobody.example",)))
    asked = told(mail(Message_ID="<m@x.org>"))
    assert trigger.kind == "mail.bounced"
    assert trigger.content.text == "It could not be delivered."
    said = facts(trigger)
    assert said["report_of"] == OURS
    assert said["report_recipient"] == "bob@example.net"
    assert (said["report_action"], said["report_status"]) == ("failed", "5.1.1")
    assert "No such user" in said["report_says"]
    assert trigger.context.reply_to is None
    assert set(trigger.context.joins) & {asked.context.thread, *asked.context.joins}


@pytest.mark.feature("mail.bounces")
def test_a_read_receipt_is_known_and_tied_to_the_mail_that_was_read() -> None:
    trigger = told(report(RECEIPT))
    assert trigger.kind == "mail.receipt"
    assert facts(trigger)["report_of"] == OURS
    assert facts(trigger)["report_action"] == "displayed"
