"""Quotes: what the writer of a mail added, without what is quoted and signed; inline answers stay.

When in doubt a line is kept: the whole text is kept beside it anyway, and an answer that is cut
away is worse than a quotation too many.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

KEPT_QUOTE_LINES: Final = 6  # of each quotation above an inline answer
MAX_LINES: Final = 5000
HEAD_LINES: Final = 3  # "On Monday … wrote:" may be wrapped so often

_WROTE: Final = (
    r"wrote|writes|schrieb|écrit|escribió|escreveu|scritto|skrev|skrifaði|kirjoitti|napisał\w*|napsal\w*"
    r"|schreef|geschreven|пишет|написал\w*|写道|寫道|のメール|yazd\u0131|írta|a scris"
)
_HEAD: Final = re.compile(rf"(?=.*\d)(?=.*(?:{_WROTE})).*[:\uff1a]\s*$", re.IGNORECASE | re.DOTALL)
_LOOSE_HEAD: Final = re.compile(r"(?=.*\d)(?=.*@).*[:\uff1a]\s*$", re.DOTALL)
_BEGINS_HEAD: Final = re.compile(
    r"\s*(?:-{2,}\s*)?(?:(?:On|Am|Le|El|Il|Em|Den|Op|Dne|Dnia|W dniu|Pe)\b|在|于|於|\d)",
    re.IGNORECASE,
)
_FROM: Final = re.compile(
    r"\s*\**(?:From|Von|De|Da|Fra|Från|Od|Van|От|Lähettäjä|Kimden|发件人|寄件者|寄件人|差出人)"
    r"\**\s?[:\uff1a]",
    re.IGNORECASE,
)
_FIELD: Final = re.compile(
    r"\s*\**(?:Sent|Date|To|Cc|Subject|Gesendet|Datum|An|Betreff|Envoyé|À|Objet|Enviado|Fecha|Para"
    r"|Asunto|Data|Assunto|Inviato|A|Oggetto|Sendt|Til|Emne|Skickat|Till|Ämne|Wysłano|Do|Temat"
    r"|Verzonden|Aan|Onderwerp|Дата|Кому|Тема|发送时间|日期|收件人|抄送|主题|寄件日期|主旨|送信日時|宛先|件名"
    r")\**\s?[:\uff1a]",
    re.IGNORECASE,
)
_DIVIDER: Final = re.compile(
    r"\s*-{2,}\s*(?:Original|Ursprüngliche|Forwarded|Weitergeleitete|Message d'origine"
    r"|Mensaje original"
    r"|Messaggio originale|Oprindelig|Ursprungligt|Oryginalna|Oorspronkelijk|Mensagem original"
    r"|原始邮件|原始郵件|转发邮件|元のメッセージ)[^\n]*-{2,}\s*$"
    r"|\s*Begin forwarded message\s*:\s*$|\s*-{2,}\s*Forwarded by .*",
    re.IGNORECASE,
)
_SIGNATURE: Final = re.compile(r"--\s?$")
_SENT_FROM: Final = re.compile(
    r"\s*(?:Sent from (?:my|a) [\w ]{1,30}|Sent from [A-Z]\w*(?: for \w+)?|Von meinem \w+ gesendet"
    r"|Get Outlook for \w+.*|发自我的\s?\w+|發自我的\s?\w+|\w+から送信|Envoyé de mon \w+"
    r"|Enviado desde mi \w+)\.?\s*$",
    re.IGNORECASE,
)
_RULE: Final = re.compile(r"\s*[_-]{5,}\s*$")
FOOTER_LINES: Final = 6
MAX_HEAD_CHARS: Final = 400


def own_words(text: str) -> str:
    """Return what the writer added; the whole text where that would be nothing."""
    lines = text.split("\n")[:MAX_LINES]
    lines = lines[: _tail(lines)]
    quoted = _quoted(lines)
    lines, quoted = _without_footer(lines, quoted)
    answers = [n for n, line in enumerate(lines) if line.strip() and not quoted[n]]
    if not answers:
        return text.strip()
    lines, quoted = lines[: answers[-1] + 1], quoted[: answers[-1] + 1]
    kept = _shortened(lines, quoted) if any(quoted) else lines
    own = re.sub(r"\n{3,}", "\n\n", "\n".join(_unsigned(kept))).strip()
    return own or text.strip()


def _tail(lines: Sequence[str]) -> int:
    """Return where everything that follows is somebody else's, without any mark on its lines."""
    for n, line in enumerate(lines):
        if _DIVIDER.match(line) and _any(lines[:n]):
            return n
        if _is_field_block(lines, n) and _any(lines[:n]):
            return n - 1 if n and _RULE.match(lines[n - 1]) else n
        if _unmarked_head(lines, n) and _any(lines[:n]):
            return n
    return len(lines)


def _any(lines: Sequence[str]) -> bool:
    return any(line.strip() and not line.startswith(">") for line in lines)


def _is_field_block(lines: Sequence[str], n: int) -> bool:
    """Tell whether a mail's head stands here, as Outlook quotes it: From, and another field."""
    return bool(_FROM.match(lines[n])) and any(_FIELD.match(one) for one in lines[n + 1 : n + 5])


def _unmarked_head(lines: Sequence[str], n: int) -> bool:
    """Tell whether "On … wrote:" stands here, and no line with ``>`` comes after it."""
    if not _BEGINS_HEAD.match(lines[n]):
        return False
    size = _head_size(lines, n, _HEAD)
    return bool(size) and not any(line.startswith(">") for line in lines[n + size :])


def _head_size(lines: Sequence[str], n: int, pattern: re.Pattern[str]) -> int:
    for size in range(1, HEAD_LINES + 1):
        chunk = lines[n : n + size]
        if len(chunk) < size or not chunk[-1].strip():
            return 0
        if len(joined := " ".join(chunk)) < MAX_HEAD_CHARS and pattern.match(joined):
            return size
    return 0


def _quoted(lines: Sequence[str]) -> list[bool]:
    """Say of each line whether it is quoted: by its mark, or as the head of a quotation."""
    quoted = [line.startswith(">") for line in lines]
    for n in range(len(lines)):
        if quoted[n] and not (n and quoted[n - 1]):
            begin = _head_above(lines, quoted, n)
            quoted[begin:n] = [True] * (n - begin)
    return quoted


def _head_above(lines: Sequence[str], quoted: Sequence[bool], n: int) -> int:
    """Return where the head of the quotation begins that begins with line n; n without a head."""
    end = n
    while end and not lines[end - 1].strip():
        end -= 1
    found = n
    for begin in range(end - 1, max(end - 1 - HEAD_LINES, -1), -1):
        if quoted[begin] or not lines[begin].strip():
            break
        joined = " ".join(lines[begin:end])
        if len(joined) < MAX_HEAD_CHARS and (_HEAD.match(joined) or _LOOSE_HEAD.match(joined)):
            found = begin
            if _BEGINS_HEAD.match(lines[begin]):
                break
    return found


def _without_footer(lines: list[str], quoted: list[bool]) -> tuple[list[str], list[bool]]:
    """Leave out what a list or a program adds below a quotation, and a signature there."""
    if not any(quoted):
        return lines, quoted
    last = max(n for n, is_quoted in enumerate(quoted) if is_quoted)
    for n in range(last + 1, len(lines)):
        if not lines[n].strip():
            continue
        short = len(lines) - n <= FOOTER_LINES
        if _SIGNATURE.match(lines[n]) or (_RULE.match(lines[n]) and short):
            return lines[:n], quoted[:n]
    return lines, quoted


def _shortened(lines: Sequence[str], quoted: Sequence[bool]) -> list[str]:
    """Keep the end of each quotation that an answer stands below."""
    out, run = list[str](), list[str]()
    for line, is_quoted in zip(lines, quoted, strict=True):
        if is_quoted or (run and not line.strip()):
            run.append(line)
            continue
        if len(run) > KEPT_QUOTE_LINES:
            run = ["> […]", *run[-KEPT_QUOTE_LINES:]]
        out += [*run, line]
        run = []
    return out


def _unsigned(lines: Sequence[str]) -> list[str]:
    """Leave out the signature, and what a telephone adds."""
    cut = next((n for n, line in enumerate(lines) if n and _SIGNATURE.match(line)), len(lines))
    kept = list(lines[:cut])
    while kept and (not kept[-1].strip() or _SENT_FROM.match(kept[-1])):
        kept.pop()
    return kept or list(lines)
