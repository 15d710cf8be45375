"""Render: the API's JSON for people. What others wrote can't steer their terminal."""

from __future__ import annotations

import json
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import click

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], object]]

_STEPS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_COLOURS: Final = {
    "red": "failed dead denied unknown revoked broke needs_auth expired lost killed spawn_failed",
    "yellow": "held waiting blocked backing_off asked paused pending sending quarantined timed_out",
    "green": "started woke done completed ready sent answered online active approved exited",
}
_COLOUR_OF: Final = {word: colour for colour, words in _COLOURS.items() for word in words.split()}


class Shown(str):
    """Text that is fit for a terminal as it is: coloured by us, of words that we know."""

    __slots__ = ()


def safe(value: object, *, lines: bool = False) -> str:
    """Return text without control and direction characters; of several lines, one."""
    text = "" if value is None else str(value)
    kept = "\n\t" if lines else ""
    shown = (
        c if c in kept or unicodedata.category(c) not in {"Cc", "Cf", "Cs"} else _stand_in(c)
        for c in text
    )
    return "".join(shown)


def _stand_in(character: str) -> str:
    return " " if character in "\n\r\t" else "\ufffd"


def state(value: object) -> Shown:
    """Return a state in its colour; the word says it all without."""
    word = safe(value)
    beginning = word.partition("_")[0]
    return Shown(click.style(word, fg=_COLOUR_OF.get(word) or _COLOUR_OF.get(beginning)))


def age(at_ms: int | None, now_ms: int) -> str:
    """Return how long ago a time was: ``3m``."""
    if at_ms is None:
        return "never"
    seconds = max(now_ms - at_ms, 0) // 1000
    size, unit = next((step for step in _STEPS if seconds >= step[0]), _STEPS[-1])
    return f"{seconds // size}{unit}"


def clock(at_ms: int | None) -> str:
    """Return a time of day, local, to the millisecond."""
    if at_ms is None:
        return "-"
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC).astimezone():%H:%M:%S.%f}"[:-3]


def day(at_ms: int | None) -> str:
    """Return a day and a time, local."""
    if at_ms is None:
        return "-"
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC).astimezone():%Y-%m-%d %H:%M:%S}"


def money(costs: Row) -> str:
    """Return what a sum of the ledger says: dollars, tokens, seconds."""
    tokens = f"{costs['tokens_input']:,} in ({costs['tokens_cached']:,} cached)"
    said = f"{costs['calls']} calls, {tokens}, {costs['tokens_output']:,} out"
    micros = costs["usd_micros"]
    if micros is None:
        return f"{said}, price unknown" if costs["calls"] else said
    unpriced = f" + {costs['unpriced']} unpriced" if costs["unpriced"] else ""
    return f"{said}, ${micros / 1e6:.4f}{unpriced}"


def emit_json(value: object) -> None:
    """Print one JSON object for programs."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def emit_line(value: object) -> None:
    """Print one JSON object on one line, of a stream."""
    click.echo(json.dumps(value, ensure_ascii=False))


def emit_table(
    rows: Iterable[Row], columns: Sequence[Column], *, empty: str, titles: bool = True
) -> None:
    """Print rows under titles; on a terminal the last column is cut to the width."""
    cells = [[_cell(read(row)) for _, read in columns] for row in rows]
    if not cells:
        click.echo(empty, err=True)
        return
    head = [title for title, _ in columns]
    widths = [max(width(row[n]) for row in (head, *cells)) for n in range(len(columns))]
    if titles:
        click.echo(click.style(_line(head, widths), bold=True))
    for row in cells:
        click.echo(_line(row, widths))


def _cell(value: object) -> str:
    return value if isinstance(value, Shown) else safe(value)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (space - width(cell)) for cell, space in zip(cells, widths, strict=True)]
    line = "  ".join(padded).rstrip()
    room = shutil.get_terminal_size().columns
    if sys.stdout.isatty() and width(line) > room and "\x1b[" not in cells[-1]:
        spare = room - width("  ".join(padded[:-1])) - 3
        line = "  ".join([*padded[:-1], f"{cells[-1][: max(spare, 0)]}…"])
    return line


def width(text: str) -> int:
    """Return how many columns a terminal needs for *text*."""
    wide = {"W", "F"}
    plain = click.unstyle(text)
    return sum(1 + (unicodedata.east_asian_width(c) in wide) for c in plain)


def emit_fields(it: Row, *, indent: int = 0) -> None:
    """Print everything that *it* holds, one field a line, nested below."""
    for name, value in it.items():
        label = f"{' ' * indent}{click.style(safe(name), fg='cyan')}:"
        match value:
            case dict() if value:
                click.echo(label)
                emit_fields(value, indent=indent + 2)
            case list() if value and all(isinstance(each, dict) for each in value):
                for n, each in enumerate(value):
                    click.echo(f"{label} [{n}]")
                    emit_fields(each, indent=indent + 2)
            case list():
                click.echo(f"{label} {', '.join(safe(each) for each in value)}")
            case _:
                click.echo(f"{label} {_scalar(name, value, indent)}")


def _scalar(name: str, value: object, indent: int) -> str:
    if name.endswith("_ms") and isinstance(value, int):
        return day(value)
    if value is None:
        return "-"
    text = safe(value, lines=True)
    return text.replace("\n", "\n" + " " * (indent + 2)) if "\n" in text else text


def emit_done(done: object, said: str, *, as_json: bool) -> None:
    """Say what was done, or print the answer for programs."""
    if as_json:
        emit_json(done)
    else:
        click.echo(safe(said))
