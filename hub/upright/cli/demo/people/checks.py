"""Checks: whether the people were served, asked of the servers that they use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from email.message import EmailMessage
from typing import Final

from upright.cli.demo.checks import Verdict
from upright.cli.demo.children import DemoError
from upright.cli.demo.people import letters
from upright.cli.demo.people.drawn import OWN
from upright.cli.demo.people.story import Scene, Seen
from upright.cli.demo.stage import BOT, REPOSITORY, listed

Check = Callable[[Scene, Seen], Awaitable[tuple[bool, str]]]


# ------------------------------------------------------------------ chat
async def _one_answer(scene: Scene, seen: Seen) -> tuple[bool, str]:
    there = [one for one in seen.said if one["channel"] == scene.channel]
    threads = [str(one.get("thread_ts", "")) for one in there]
    return len(seen.said) == 1 and threads == [seen.asked_ts], f"{len(seen.said)} in all"


async def _it_links(scene: Scene, seen: Seen) -> tuple[bool, str]:
    """Ask GitHub for its own addresses of what the answer must link."""
    text = " ".join(str(one["text"]) for one in seen.said)
    github, number = scene.stage.github, scene.first.number
    path = f"/_sandbox/repos/{REPOSITORY}/issues/{number}/comments"
    comments = listed(await github.get(path))
    ours = [str(one["html_url"]) for one in comments if one["user"]["login"] == BOT]
    pull = ours[0].partition("#")[0] if ours else "?"
    commit = f"{pull.partition('/pull/')[0]}/commit/{scene.first.pushed}"
    wanted = {"pull request": pull, "comment": ours[0] if ours else "?", "commit": commit}
    words = text.replace("<", " ").replace(">", " ").replace("|", " ").split()
    missing = [name for name, url in wanted.items() if url not in words]
    return not missing, f"missing: {', '.join(missing)}" if missing else pull


# ------------------------------------------------------------------ mail
async def _it_waited(_: Scene, seen: Seen) -> tuple[bool, str]:
    if seen.draft is None:
        return False, "no draft was held for a person"
    return bool(seen.draft["outbox_id"]), f"{seen.draft['id']} asks for {seen.draft['outbox_id']}"


async def _none_before(_: Scene, seen: Seen) -> tuple[bool, str]:
    detail = "never looked" if seen.sent_before < 0 else f"{seen.sent_before} mails until then"
    return seen.sent_before == 0, detail


async def _one_reply(_: Scene, seen: Seen) -> tuple[bool, str]:
    return len(seen.sent) == 1, f"{len(seen.sent)} mails in all"


async def _in_the_thread(scene: Scene, seen: Seen) -> tuple[bool, str]:
    if not seen.sent:
        return False, "there is no reply"
    who, mail = scene.cast, seen.sent[0]
    answers = letters.message_id(who)
    holds = {
        "To": who.inviter in mail.get("To", ""),
        "From": OWN in mail.get("From", ""),
        "Subject": mail.get("Subject", "") == f"Re: Invitation: {who.invited.title}",
        "In-Reply-To": mail.get("In-Reply-To", "") == answers,
        "References": answers in mail.get("References", ""),
        "Auto-Submitted": mail.get("Auto-Submitted", "") == "auto-replied",
    }
    wrong = [name for name, ok in holds.items() if not ok]
    return not wrong, f"wrong: {', '.join(wrong)}" if wrong else f"In-Reply-To: {answers}"


async def _it_declines(scene: Scene, seen: Seen) -> tuple[bool, str]:
    """The demo knows the conflict by what it drew; the reply must, by the calendar."""
    text = _body(seen.sent[0]) if seen.sent else str((seen.draft or {}).get("prompt", ""))
    named = letters.shown(scene.cast.invited) in text
    told = scene.cast.taken.title in text
    if not scene.cast.conflict:
        return False, "there was no conflict to decline for"
    if told:
        return False, f"it tells a stranger of {scene.cast.taken.title}"
    return named and "can't" in text, letters.shown(scene.cast.invited)


def _body(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    return str(body.get_content()) if body else ""


async def _unread(scene: Scene, _: Seen) -> tuple[bool, str]:
    unseen = await scene.servers.unseen()
    return unseen == 1, f"{unseen} unread"


async def _nothing_doubled(scene: Scene, seen: Seen) -> tuple[bool, str]:
    """Count what the hub says that it sent: a comment, a chat message and a mail, each once."""
    effects = listed(await scene.stage.hub.get("/v1/outbox"))
    states = sorted(f"{one['source']} {one['state']}" for one in effects)
    wanted = ["github sent", "post sent", "slack sent"]
    return states == wanted and len(seen.sent) == 1, ", ".join(states)


async def _completed(_: Scene, seen: Seen) -> tuple[bool, str]:
    state = seen.work["state"] if seen.work else "not opened"
    return state == "completed", str(state)


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("one answer is in the thread of the question", _one_answer),
    ("it links the pull request, the comment and the commit", _it_links),
    ("the reply to the invitation waited for a person", _it_waited),
    ("no mail left before the approval", _none_before),
    ("one reply arrived by SMTP", _one_reply),
    ("it is in the thread, and says that a program wrote it", _in_the_thread),
    ("it declines for the conflict, and does not tell what it is", _it_declines),
    ("the invitation is unread in the mailbox, as before", _unread),
    ("nothing was said twice", _nothing_doubled),
    ("the item of the invitation is completed", _completed),
)


async def judge(scene: Scene, seen: Seen) -> list[Verdict]:
    """Run every check; one that can't be made has failed."""
    verdicts = []
    for name, check in CHECKS:
        try:
            ok, detail = await check(scene, seen)
        except DemoError as error:
            ok, detail = False, str(error)
        verdicts.append(Verdict(name=name, ok=ok, detail=detail))
        scene.speaker.check(name, ok=ok, detail=detail)
    return verdicts
