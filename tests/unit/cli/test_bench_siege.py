"""The siege's own parts: what is said, what counts as acknowledged, and what a report says."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from upright.api import Address, InboundRequest, Secret
from upright.cli.bench.draw import Dice
from upright.cli.bench.load import Pattern
from upright.cli.bench.siege import disk
from upright.cli.bench.siege.chaos import exponential_s
from upright.cli.bench.siege.command import siege
from upright.cli.bench.siege.crowd import Journal, Line, lines, rows
from upright.cli.bench.siege.errors import errors_in, told
from upright.cli.bench.siege.findings import Findings
from upright.cli.bench.siege.report import Report
from upright.cli.bench.siege.stage import SCRIPT
from upright.cli.bench.siege.words import ELSEWHERE, UNKNOWN_BOT, Pen, Said, Word
from upright.cli.demo.stage import BOT, MEMBER
from upright.llm.scripted.script import load
from upright_github.event import Identity
from upright_github.translate import translate
from upright_github.webhook import open_delivery

KEY: Final = "a key for tests"
SAID: Final = Said(number=70_000_001, thread=3, author=MEMBER, text=f"@{BOT} timer please")
REPOSITORY: Final = {
    "id": 1,
    "full_name": "acme/ledger",
    "html_url": "http://github.test/acme/ledger",
    "default_branch": "main",
}
PATTERN: Final = Pattern(
    headers={"X-GitHub-Event": "issue_comment", "Content-Type": "application/json"},
    body={
        "action": "created",
        "repository": REPOSITORY,
        "sender": {"login": "x", "type": "User"},
        "issue": {"number": 1, "id": 9, "title": "Case", "html_url": "", "labels": []},
        "comment": {"id": 1, "body": "", "user": {"login": "x", "type": "User"}, "html_url": ""},
    },
)


def pen(seed: int = 1, words: tuple[Word, ...] = tuple(Word)) -> Pen:
    return Pen(client=2, threads=5, words=words, dice=Dice(seed))


def drawn(which: Pen, times: int) -> Iterator[Said]:
    for _ in range(times):
        yield from which.next()


# ------------------------------------------------------------------ what is said
@pytest.mark.parametrize("version", [0, 1, 3_601])
def test_the_connector_knows_each_event_by_the_key_that_the_client_writes_down(
    version: int,
) -> None:
    said = replace(SAID, version=version)
    body = said.body(PATTERN)
    headers = {k.lower(): v for k, v in PATTERN.signed(body, "guid", KEY).items()}
    request = InboundRequest(headers=headers, body=body, remote="")
    delivery = open_delivery(request, Secret(KEY), max_body_bytes=1 << 20)
    (trigger,) = translate(delivery, source="github", me=Identity(login=BOT), only=frozenset[str]())
    assert said.key in trigger.dedupe
    assert (trigger.actor.id, trigger.context.address) == (MEMBER, Address.MENTION)
    assert trigger.context.thread.endswith("#3")


def test_the_same_seed_says_the_same_and_another_client_shares_no_id() -> None:
    first, again = list(drawn(pen(), 200)), list(drawn(pen(), 200))
    other = Pen(client=3, threads=5, words=tuple(Word), dice=Dice(1))
    assert first == again
    assert not {one.number for one in first} & {one.number for one in drawn(other, 200)}


def test_everything_that_is_to_be_said_is_said() -> None:
    said = list(drawn(pen(), 2_000))
    asked = {word for word in Word if any(f" {word} please" in one.text for one in said)}
    times = Counter(one.key for one in said)
    assert asked == set(Word)
    assert {one.author for one in said} >= {MEMBER, UNKNOWN_BOT}
    assert max(times.values()) > 1
    assert any(one.version > 1 for one in said)
    assert all(one.thread <= 5 or one.thread >= ELSEWHERE for one in said)
    assert not [one for one in said if one.thread >= ELSEWHERE and BOT in one.text]


def test_a_word_is_asked_for_only_when_it_is_wanted() -> None:
    said = drawn(pen(words=(Word.ASK,)), 500)
    assert {one.text.split()[1] for one in said if BOT in one.text} == {"ask"}


def test_the_script_can_be_read_and_knows_every_word() -> None:
    script = load(SCRIPT)
    asked = [where.match for rule in script.rules for where in rule.where]
    assert not [word for word in Word if not any(word in match for match in asked)]


def test_pauses_are_exponential() -> None:
    dice = Dice(4)
    pauses = [exponential_s(dice, 2.0) for _ in range(4_000)]
    assert min(pauses) >= 0
    assert statistics.mean(pauses) == pytest.approx(2.0, rel=0.1)
    assert statistics.median(pauses) == pytest.approx(1.386, rel=0.1)


# ------------------------------------------------------------------ what counts
def test_a_torn_last_line_was_never_acknowledged(tmp_path: Path) -> None:
    log = tmp_path / "client.log"
    journal = Journal(log)
    journal.write(["comment:1:created:", 4, True])
    journal.close()
    log.write_bytes(log.read_bytes() + b'["comment:2:cre')
    assert lines(log) == [Line("comment:1:created:", 4, first=True)]
    assert rows(tmp_path / "nothing.log") == []


def test_errors_of_the_hubs_are_counted_by_event_and_exception(tmp_path: Path) -> None:
    trace = "Traceback (most recent call last):\n  x\nupright.store.errors.SomeError: why"
    bad = json.dumps({"level": "error", "event": "turn.failed", "trace": trace})
    group = json.dumps({"level": "error", "event": "service.failed", "trace": f"  | {trace}\n +--"})
    (tmp_path / "hub-1.log").write_text(f"{bad}\n{bad}\nno json\n", encoding="utf-8")
    (tmp_path / "model.log").write_text(f"{bad}\n", encoding="utf-8")
    assert errors_in(tmp_path) == {"turn.failed SomeError": 2}
    assert list(told([group, '{"level":"info"}', "[]", '{"level":"error"}'])) == [
        "service.failed SomeError",
        "",
    ]


def test_ballast_takes_what_is_left_and_gives_it_back(tmp_path: Path) -> None:
    ballast = disk.Ballast(tmp_path)
    ballast.free()
    assert list(tmp_path.iterdir()) == []


REPORT: Final = Report(
    mode="kill",
    database="SQLite",
    seed=7,
    seconds=1.25,
    kills=3,
    landed=3,
    answers={"202": 5},
    errors={},
    findings=Findings(acknowledged=5, whole=4),
)
FOUND: Final = {
    "lost": Findings(lost=["it went wrong"]),
    "doubled": Findings(doubled=["it went wrong"]),
    "stuck": Findings(stuck=["it went wrong"]),
    "broken": Findings(broken=["it went wrong"]),
}


def test_a_run_without_findings_is_no_failure() -> None:
    told_json = REPORT.as_json()
    assert told_json["failures"] == []
    assert (told_json["landed"], told_json["acknowledged"], told_json["whole"]) == (3, 5, 4)
    assert not [line for line in REPORT.lines() if "FAILED" in line]


@pytest.mark.parametrize("kind", FOUND)
def test_every_finding_is_a_failure(kind: str) -> None:
    found = replace(REPORT, findings=FOUND[kind])
    assert found.as_json()["failures"] == ["it went wrong"]
    assert found.as_json()[kind] == 1
    assert list(found.lines())[-1] == "FAILED: it went wrong"


def test_blows_that_did_not_land_are_a_failure_unless_the_mode_was_skipped() -> None:
    assert replace(REPORT, landed=1).all_failures() == ["2 of 3 did not land"]
    skipped = replace(REPORT, landed=0, skipped="kernel: no")
    assert skipped.all_failures() == []
    assert list(skipped.lines()) == ["skipped: kernel: no"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mode", "backend"], "needs --database-url"),
        (["--mode", "full", "--database-url", "postgresql://x/y"], "is for SQLite alone"),
        (["--mode", "locked", "--database-url", "postgresql://x/y"], "is for SQLite alone"),
        (["--words", "timer,dance"], "not dance"),
        (["--words", ""], "--words are of"),
    ],
)
def test_a_wish_that_makes_no_sense_is_one_clear_error(words: list[str], said: str) -> None:
    result = CliRunner().invoke(siege, words)
    assert result.exit_code == click.UsageError.exit_code
    assert said in result.output
