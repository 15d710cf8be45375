"""Dialects: Markdown as plain text, as Slack's mrkdwn, and as the HTML that Matrix shows.

Sources: docs.slack.dev, "Formatting message text"; spec.matrix.org, client-server API, section
"m.room.message msgtypes" (the elements and attributes that clients should let through).
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Final

from upright.kit.markdown import Dialect, Item, render

_SAFE: Final = re.compile(r"(?:https?|mailto|ftp|magnet):[^\s\"'<>]+", re.IGNORECASE)
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,40}")
_ZERO_WIDTH: Final = "\N{ZERO WIDTH SPACE}"


def plain(markdown: str) -> str:
    """Return what a person reads, without any mark; addresses stay in brackets."""
    return render(markdown, PLAIN)


def mrkdwn(markdown: str) -> str:
    """Return Slack's own mark-up. No text can mention anybody or everybody."""
    return render(markdown, MRKDWN)


def matrix_html(markdown: str) -> str:
    """Return HTML of the elements that Matrix clients show; all that a text brings is escaped."""
    return render(markdown, HTML)


# ------------------------------------------------------------------ plain
def _as_it_is(text: str) -> str:
    return text


def _plain_link(label: str, url: str) -> str:
    return url if label in {url, ""} else f"{label} ({url})"


def _lines(items: Sequence[Item], bullet: str) -> str:
    return "\n".join(
        f"{'    ' * item.depth}{f'{item.number}.' if item.number else bullet} {item.text}"
        for item in items
    )


def _prefixed(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n"))


PLAIN: Final = Dialect(
    text=_as_it_is,
    code=_as_it_is,
    strong=_as_it_is,
    em=_as_it_is,
    strike=_as_it_is,
    link=_plain_link,
    fence=lambda _language, code: code,
    heading=lambda _level, text: text,
    paragraph=_as_it_is,
    quote=_prefixed,
    items=lambda items: _lines(items, "-"),
    rule="---",
    join="\n\n",
)


# ------------------------------------------------------------------ Slack
def slack_escape(text: str) -> str:
    """Escape the three characters that Slack reads; so ``<!channel>`` stays a text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _slack_text(text: str) -> str:
    # A mark that Markdown took for a character must not become one at Slack.
    return re.sub(r"(?<!\w)([*_~`])(?=\S)", rf"{_ZERO_WIDTH}\1{_ZERO_WIDTH}", slack_escape(text))


def _slack_link(label: str, url: str) -> str:
    if not _SAFE.fullmatch(url):
        return f"{label} ({slack_escape(url)})"
    target = slack_escape(url).replace("|", "%7C")
    said = label.replace("|", "¦").replace("\n", " ").replace(_ZERO_WIDTH, "")
    return f"<{target}>" if said in {target, slack_escape(url)} else f"<{target}|{said}>"


def _slack_code(text: str) -> str:
    return f"`{slack_escape(text.replace('`', chr(0x2CB)))}`"


def _slack_fence(_language: str, code: str) -> str:
    # Slack ends a block at the next three ticks, wherever they stand.
    return f"```\n{slack_escape(code).replace('```', f'`{_ZERO_WIDTH}`{_ZERO_WIDTH}`')}\n```"


MRKDWN: Final = Dialect(
    text=_slack_text,
    code=_slack_code,
    strong=lambda text: f"*{text}*",
    em=lambda text: f"_{text}_",
    strike=lambda text: f"~{text}~",
    link=_slack_link,
    fence=_slack_fence,
    heading=lambda _level, text: f"*{text.replace('*', '')}*" if text.strip() else "",
    paragraph=_as_it_is,
    quote=_prefixed,
    items=lambda items: _lines(items, "•"),
    rule="———",
    join="\n\n",
)


# ------------------------------------------------------------------ Matrix
def _html_text(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br>")


def _html_link(label: str, url: str) -> str:
    if not _SAFE.fullmatch(url):
        return f"{label} ({html.escape(url)})"
    return f'<a href="{html.escape(url)}">{label}</a>'


def _html_fence(language: str, code: str) -> str:
    named = f' class="language-{language}"' if _LANGUAGE.fullmatch(language) else ""
    return f"<pre><code{named}>{html.escape(code, quote=False)}\n</code></pre>"


def _html_items(items: Sequence[Item]) -> str:
    """Nest the lists; an item stays open until the next one that is no deeper."""
    out, opened = list[str](), list[str]()
    for item in items:
        while len(opened) > item.depth + 1:
            out.append(f"</li></{opened.pop()}>")
        if len(opened) == item.depth + 1:
            out.append("</li>")
        while len(opened) < item.depth + 1:
            opened.append("ol" if item.number else "ul")
            begins = item.number not in {"", "1"}
            out.append(f'<ol start="{item.number}">' if begins else f"<{opened[-1]}>")
        out.append(f"<li>{item.text}")
    out += [f"</li></{one}>" for one in reversed(opened)]
    return "".join(out)


HTML: Final = Dialect(
    text=_html_text,
    code=lambda text: f"<code>{html.escape(text, quote=False)}</code>",
    strong=lambda text: f"<strong>{text}</strong>",
    em=lambda text: f"<em>{text}</em>",
    strike=lambda text: f"<del>{text}</del>",
    link=_html_link,
    fence=_html_fence,
    heading=lambda level, text: f"<h{level}>{text}</h{level}>",
    paragraph=lambda text: f"<p>{text}</p>",
    quote=lambda text: f"<blockquote>{text}</blockquote>",
    items=_html_items,
    rule="<hr>",
    join="",
)
