"""Nature: did a person write this, and may it be answered? Two robots must never talk for ever.

Header lines decide, never the subject or the text (RFC 3834, RFC 2369). A person who writes
through a list, or whose server adds X-Auto-Response-Suppress, is a person.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from upright_mail.mime import Mail

_LIST: Final = (
    "list-id",
    "list-post",
    "list-unsubscribe",
    "list-help",
    "list-owner",
    "mailing-list",
)
_REPLIED: Final = ("x-autoreply", "x-autorespond", "x-auto-reply", "x-mail-autoreply")
_BULK: Final = frozenset({"bulk", "junk", "list"})
_SYSTEM: Final = ("mailer-daemon@", "postmaster@", "mail-daemon@")


class Nature(StrEnum):
    """What a mail is; the values are the triggers' kinds."""

    MESSAGE = "mail.received"
    AUTO_REPLY = "mail.auto_reply"
    NOTIFICATION = "mail.notification"
    BOUNCE = "mail.bounced"
    RECEIPT = "mail.receipt"


def nature(mail: Mail) -> Nature:
    """Say what a mail is."""
    if mail.report is not None:
        reports = {
            "delivery-status": Nature.BOUNCE,
            "disposition-notification": Nature.RECEIPT,
        }
        return reports.get(mail.report.type, Nature.NOTIFICATION)
    headers, answers = mail.headers, bool(mail.in_reply_to or mail.references)
    automatic = headers.word("auto-submitted")
    if automatic and automatic != "no":
        replied = automatic == "auto-replied" or (automatic == "auto-generated" and answers)
        return Nature.AUTO_REPLY if replied else Nature.NOTIFICATION
    if headers.word("precedence") == "auto_reply" or any(headers.has(one) for one in _REPLIED):
        return Nature.AUTO_REPLY
    if _null_sender(mail):
        system = any(one.address.startswith(_SYSTEM) for one in mail.senders)
        if system:
            return Nature.BOUNCE
        return Nature.AUTO_REPLY if answers else Nature.NOTIFICATION
    return Nature.MESSAGE


def is_list(mail: Mail) -> bool:
    """Tell whether a mail came through a list, or went to many."""
    headers = mail.headers
    return headers.word("precedence") in _BULK or any(headers.has(name) for name in _LIST)


def _null_sender(mail: Mail) -> bool:
    """Tell whether nobody wants to hear of what became of it (RFC 5321, 4.5.5)."""
    found = mail.headers.all("return-path")
    return bool(found) and found[0].strip() == "<>"
