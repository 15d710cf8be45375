"""The demo's script at work: real git, real tests, each kind of bug."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from fixtures.ledger_project import BUGS, RIGHT, Bug, git, make_project
from fixtures.scripted_worker import (
    BRANCH,
    CRITERIA,
    ROUTER_TOOLS,
    RunResult,
    Worker,
    answer_of_operator,
    card,
    really,
    stored,
)
from upright.core.mandate import Trust
from upright.core.material import block
from upright.llm.scripted.demo import demo_script
from upright.llm.scripted.script import Script, load

TEXT: Final = "The check tests failed. Run: python3 -m unittest -v"
WISH: Final = """import unittest

from ledger.dates import latest


class WishTest(unittest.TestCase):
    def test_wish(self):
        self.assertEqual(latest([1, 2]), "a pony")
"""


@pytest.fixture(scope="module")
def script() -> Script:
    return load(demo_script())


def begin(worker: Worker, folder: Path, files: dict[str, str]) -> str:
    """Let the worker hear of the failure; return the commit that failed."""
    sha = make_project(folder, files, BRANCH)
    worker.hear(card(folder, sha), stored("ci.failed", sha, TEXT))
    return sha


def head_of(folder: Path) -> str:
    return git(folder / "origin.git", "rev-parse", BRANCH)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_kind_of_bug_is_found_fixed_pushed_and_told(
    script: Script, tmp_path: Path, bug: Bug
) -> None:
    assert bug.files() != RIGHT
    worker = Worker(script)
    before = begin(worker, tmp_path, bug.files())
    after = head_of(tmp_path)
    git(tmp_path, "clone", "-q", "-b", BRANCH, "origin.git", "check")
    done = really({"argv": ["python3", "-m", "unittest"], "cwd": str(tmp_path / "check")})
    assert (after != before, done["code"]) == (True, 0), worker.lines()
    assert git(tmp_path / "check", "rev-parse", "HEAD~1") == before
    assert [after in reply["text"] for reply in worker.of("reply")] == [True]
    assert worker.of("wait")[-1]["for"] == "thread"
    assert not worker.of("ask")


def test_ci_green_on_the_pushed_commit_completes_with_a_proof_for_each_criterion(
    script: Script, tmp_path: Path
) -> None:
    worker = Worker(script)
    begin(worker, tmp_path, BUGS[0].files())
    pushed = head_of(tmp_path)
    answer = worker.hear(stored("ci.succeeded", pushed, number=5))
    (done,) = worker.of("complete")
    assert answer.rule == "finish"
    assert tuple(row["criterion"] for row in done["evidence"]) == CRITERIA
    tests, check, comment = (row["proof"] for row in done["evidence"])
    assert "jb_" in tests
    assert f"{5:026d}" in check
    assert all(pushed in proof for proof in (tests, check, comment))
    assert worker.work().text.startswith("Done")


def test_ci_green_on_another_commit_is_waited_out(script: Script, tmp_path: Path) -> None:
    worker = Worker(script)
    begin(worker, tmp_path, BUGS[0].files())
    worker.hear(stored("ci.succeeded", "0" * 40), stored("pr.pushed", head_of(tmp_path)))
    assert not worker.of("complete")
    assert [wait["for"] for wait in worker.of("wait")] == ["thread", "thread"]


def test_ci_red_again_is_looked_at_again_and_a_person_asked_when_it_is_green_here(
    script: Script, tmp_path: Path
) -> None:
    worker = Worker(script)
    begin(worker, tmp_path, BUGS[0].files())
    worker.hear(stored("ci.failed", head_of(tmp_path), number=5))
    assert "can't see the failure" in worker.of("ask")[0]["question"]
    assert worker.work().text == "Waiting for an answer."
    assert len([line for line in worker.lines() if line.startswith("git push")]) == 1


def test_a_second_cause_is_fixed_in_a_second_round(script: Script, tmp_path: Path) -> None:
    worker = Worker(script)
    begin(worker, tmp_path, BUGS[0].files())
    tree = tmp_path / "trees" / "wk_1"
    index = next(bug for bug in BUGS if bug.name == "index-biggest")
    (tree / index.path).write_text(index.files()[index.path], encoding="utf-8")
    git(tree, "commit", "--all", "--message", "Break something else")
    worker.hear(stored("ci.failed", head_of(tmp_path), number=5))
    second = head_of(tmp_path)
    worker.hear(stored("ci.succeeded", second, number=6))
    assert [second in reply["text"] for reply in worker.of("reply")] == [False, True]
    assert len(worker.of("complete")) == 1


def test_tests_that_stay_red_are_reported_and_a_person_is_asked(
    script: Script, tmp_path: Path
) -> None:
    hopeless = {**RIGHT, "tests/test_wish.py": WISH}
    worker = Worker(script)
    before = begin(worker, tmp_path, hopeless)
    assert head_of(tmp_path) == before
    assert len(worker.of("report")) == 1
    assert "no fix" in worker.of("ask")[0]["question"]
    assert not [tool for tool in ("reply", "complete") if worker.of(tool)]
    assert not git(tmp_path / "trees" / "wk_1", "status", "--porcelain", "--untracked-files=no")


def test_green_tests_that_never_turn_red_are_no_success(script: Script, tmp_path: Path) -> None:
    worker = Worker(script)
    begin(worker, tmp_path, dict(RIGHT))
    assert "can't see the failure" in worker.of("ask")[0]["question"]
    assert not worker.of("complete")


def test_a_run_that_does_nothing_is_no_success(script: Script, tmp_path: Path) -> None:
    worker = Worker(
        script, run=lambda _: {"outcome": "exited", "code": 0, "stdout": "", "stderr": ""}
    )
    begin(worker, tmp_path, BUGS[0].files())
    assert "no test that ran" in worker.of("ask")[0]["question"]
    assert not [tool for tool in ("reply", "complete") if worker.of(tool)]


@pytest.mark.parametrize("outcome", ["denied", "lost", "expired", "spawn_failed", "timed_out"])
def test_a_command_without_a_true_end_makes_it_ask_and_go_on_when_told(
    script: Script, tmp_path: Path, outcome: str
) -> None:
    broken = ["push"]

    def run(arguments: Mapping[str, Any]) -> RunResult:
        if arguments["argv"][1] in broken:
            return {"outcome": outcome, "started": "unknown"}
        return really(arguments)

    worker = Worker(script, run=run)
    before = begin(worker, tmp_path, BUGS[0].files())
    assert outcome in worker.of("ask")[0]["question"]
    assert head_of(tmp_path) == before
    assert not worker.hear(stored("ci.failed", before, number=4)).calls
    worker.hear(answer_of_operator("Tell me more."))
    assert "say 'go on'" in worker.of("ask")[1]["question"]
    broken.clear()
    worker.hear(answer_of_operator("I allowed it; go on."))
    assert len(worker.of("ask")) == 3  # it is committed: the tests are green here by now


def test_a_denied_first_command_is_tried_again_when_told(script: Script, tmp_path: Path) -> None:
    answers: list[RunResult] = [{"outcome": "denied", "started": "no"}]
    worker = Worker(script, run=lambda arguments: answers.pop() if answers else really(arguments))
    before = begin(worker, tmp_path, BUGS[0].files())
    worker.hear(answer_of_operator("go on"))
    assert head_of(tmp_path) != before
    assert worker.of("wait")[-1]["for"] == "thread"


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "cut"])
def test_a_long_command_is_waited_for_and_its_end_looked_at(
    script: Script, tmp_path: Path, *, whole: bool
) -> None:
    worker = Worker(script)

    def run(arguments: Mapping[str, Any]) -> RunResult:
        if "unittest" in arguments["argv"] and not worker.ended:
            worker.ended["jb_slow"] = {"job": "jb_slow", **really(arguments)}
            return {"job": "jb_slow", "outcome": "still_running"}
        return really(arguments)

    worker.run = run
    before = begin(worker, tmp_path, BUGS[0].files())
    assert (worker.of("wait")[-1]["for"], worker.of("wait")[-1]["job"]) == ("job", "jb_slow")
    assert worker.work().text == "Waiting for the command."
    worker.hear(job_finished("jb_slow", worker.ended["jb_slow"], whole=whole))
    assert head_of(tmp_path) != before
    assert worker.of("wait")[-1]["for"] == "thread"


def job_finished(job: str, result: RunResult, *, whole: bool) -> str:
    """Return how the hub tells of a job's end; its text may be cut."""
    text = json.dumps(result) if whole else json.dumps(result)[:50] + " [cut"
    body = {"facts": {"job": job, "outcome": result["outcome"]}, "text": text}
    header = "[1 of 1] trigger tr_9 kind=job.finished channel=job actor=system role=material"
    return f"{header}\n{block('tr_9', Trust.MEMBER, body)}"


def test_a_job_that_ended_before_the_wait_is_looked_at(script: Script, tmp_path: Path) -> None:
    sha = make_project(tmp_path, BUGS[0].files(), BRANCH)
    worker = Worker(script, run=lambda _: {"job": "jb_slow", "outcome": "queued"})
    worker.ended["jb_slow"] = {"job": "jb_slow", "outcome": "denied", "stdout": "", "stderr": ""}
    worker.hear(card(tmp_path, sha), stored("ci.failed", sha, TEXT))
    refused = {"error": "jb_slow has ended already: denied; read it with status"}
    worker.messages[-1]["content"] = json.dumps(refused)
    worker.work()
    assert worker.of("status") == [{"job": "jb_slow"}]
    assert "denied" in worker.of("ask")[0]["question"]


def test_without_a_device_it_says_so_and_goes_on_when_there_is_one(
    script: Script, tmp_path: Path
) -> None:
    sha = make_project(tmp_path, BUGS[0].files(), BRANCH)
    missing: list[RunResult] = [{"error": "no_device", "waiting": True}]
    worker = Worker(script, run=lambda arguments: missing.pop() if missing else really(arguments))
    answer = worker.hear(card(None, sha), stored("ci.failed", sha, TEXT))
    assert answer.rule == "no_device"
    assert not worker.of("ask")
    worker.hear(card(tmp_path, sha), stored("device.ready", sha, number=2))
    assert head_of(tmp_path) != sha
    assert worker.of("wait")[-1]["for"] == "thread"


def test_the_persons_own_branches_and_files_stay_as_they_are(
    script: Script, tmp_path: Path
) -> None:
    worker = Worker(script)
    before = begin(worker, tmp_path, BUGS[0].files())
    assert head_of(tmp_path) != before
    assert git(tmp_path / "work", "rev-parse", BRANCH) == before
    assert not git(tmp_path / "work", "status", "--porcelain")


@pytest.mark.parametrize(
    "text",
    ["Run: rm -rf /", "Run: python3 -m http.server", "", "Run: python3 -m unittest; rm -rf ~"],
)
def test_of_cis_command_only_a_test_runner_with_plain_words_is_run(
    script: Script, tmp_path: Path, text: str
) -> None:
    worker = Worker(script)
    sha = make_project(tmp_path, BUGS[0].files(), BRANCH)
    worker.hear(card(tmp_path, sha), stored("ci.failed", sha, text))
    programs = {tuple(run["argv"][:1]) for run in worker.of("run")}
    tests = {tuple(run["argv"][:4]) for run in worker.of("run") if run["argv"][0] == "python3"}
    assert programs == {("git",), ("python3",), ("cat",)}
    assert tests == {("python3", "-B", "-m", "unittest")}


def test_the_router_opens_work_for_each_red_run_and_nothing_else(script: Script) -> None:
    router = Worker(script, offered=ROUTER_TOOLS)
    answer = router.hear(
        stored("ci.failed", "a" * 40, number=1),
        stored("comment.created", "a" * 40, number=2),
        stored("ci.failed", "b" * 40, number=3),
    )
    spawned = router.of("spawn")
    assert [call["trigger"] for call in spawned] == [f"tr_{1:026d}", f"tr_{3:026d}"]
    assert [len(call["criteria"]) for call in spawned] == [3, 3]
    assert BRANCH in spawned[0]["goal"]
    assert answer.text == "A worker is on it."


def test_the_router_starts_nothing_for_other_news_or_twice(script: Script) -> None:
    router = Worker(script, offered=ROUTER_TOOLS)
    router.hear(stored("ci.failed", "a" * 40))
    answer = router.hear(stored("comment.created", "a" * 40, number=2))
    assert answer.text.startswith("Noted")
    assert len(router.of("spawn")) == 1


def test_every_call_of_a_session_has_an_id_of_its_own(script: Script, tmp_path: Path) -> None:
    worker = Worker(script)
    begin(worker, tmp_path, BUGS[0].files())
    ids = [call["id"] for message in worker.messages for call in message.get("tool_calls", ())]
    assert len(ids) == len(set(ids))
