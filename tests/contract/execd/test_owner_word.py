"""The owner's rules and word, through the real socket and the real command line."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.eventually import eventually, eventually_awaited
from fixtures.local_execd import Local, running
from fixtures.require import skip_or_fail
from upright_execd import argvrules
from upright_execd.argvrules import ArgvRule
from upright_execd.audit import first_break
from upright_execd.errors import NotRunningError, RemoteError
from upright_execd.ownerline import ask
from upright_execd.paths import paths_in
from upright_execd.shim import seccomp
from upright_wire.command import Ending, Outcome, Started, State
from upright_wire.spec import Confinement
from upright_wire.tools import heard


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Local]:
    async with running(tmp_path, ('mode = "ask"',)) as local:
        yield local


async def say(local: Local, **question: str) -> dict[str, Any]:
    return await asyncio.to_thread(ask, local.daemon.house.paths, question)


async def asked(local: Local, *argv: str, cwd: str | None = None) -> dict[str, Any]:
    """Have a command wait for the owner, and return the question."""
    assert await local.commands.exec(local.order(*argv, cwd=cwd or str(local.root))) is None
    await local.reached("jb_1", State.AWAITING_CONSENT)
    (question,) = (await say(local, op="consent"))["questions"]
    assert isinstance(question, dict)
    return question


async def started(local: Local, *args: str) -> Process:
    """Start the command line."""
    home = str(local.daemon.house.paths.config)
    program = [sys.executable, "-m", "upright_execd", "--home", home, *args]
    return await asyncio.create_subprocess_exec(
        *program, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )


async def tried(local: Local, *argv: str) -> Process:
    """Start a trial that will be asked about."""
    return await started(local, "try", "--cwd", str(local.root), "--confinement", "none", *argv)


async def execd(local: Local, *args: str) -> tuple[int, str, str]:
    """Run the command line."""
    process = await started(local, *args)
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def denied(outcome: Outcome) -> str | None:
    assert (outcome.ending, outcome.started) == (Ending.DENIED, Started.NO)
    return outcome.text


@pytest.mark.clause("E8.1", "E8.4")
async def test_in_mode_ask_nothing_runs_before_the_owner_allows_it(local: Local) -> None:
    await asked(local, "touch", "ran")
    assert not (local.root / "ran").exists()
    await say(local, op="answer", command_id="jb_1", answer="allow")
    assert (await local.final()).ending is Ending.EXITED
    assert (local.root / "ran").exists()


@pytest.mark.clause("E8.4")
async def test_a_no_is_a_denial(local: Local) -> None:
    await asked(local, "touch", "ran")
    await say(local, op="answer", command_id="jb_1", answer="deny")
    assert denied(await local.final()) == "owner_denied"
    assert not (local.root / "ran").exists()


@pytest.mark.clause("E8.4")
async def test_silence_is_a_denial(tmp_path: Path) -> None:
    async with running(tmp_path, ('mode = "ask"', "consent_timeout_s = 1")) as local:
        assert denied(await local.run("touch", "ran")) == "owner_silent"
        assert (await say(local, op="consent"))["questions"] == []


@pytest.mark.clause("E8.4")
async def test_only_what_was_shown_can_be_allowed(local: Local) -> None:
    await asked(local, "true")
    with pytest.raises(RemoteError) as caught:
        await say(local, op="answer", command_id="jb_1", answer="allow", digest="0" * 64)
    assert caught.value.status == 3
    assert (await local.reached("jb_1", State.AWAITING_CONSENT)).outcome is None


@pytest.mark.clause("E8.4")
async def test_argv_is_shown_so_that_nothing_in_it_can_pose_as_something_else(
    local: Local,
) -> None:
    question = await asked(local, "rm", "a\u202egpj.exe", "\x1b[2K", "p\u0430ypal", "x y")
    shown = '["rm", "a\\u202egpj.exe", "\\u001b[2K", "p\\u0430ypal", "x y"]'
    assert question["argv"] == shown


async def test_a_question_is_withdrawn_by_a_cancel(local: Local) -> None:
    await asked(local, "touch", "ran")
    await local.commands.cancel("jb_1")
    outcome = await local.final()
    assert (outcome.ending, outcome.started) == (Ending.CANCELLED, Started.NO)
    assert (await say(local, op="consent"))["questions"] == []


@pytest.mark.clause("E8.1")
async def test_a_word_that_comes_after_the_mode_was_switched_off_does_not_count(
    local: Local,
) -> None:
    await asked(local, "touch", "ran")
    await settings(local, 'mode = "off"')
    await say(local, op="answer", command_id="jb_1", answer="allow")
    assert denied(await local.final()) == "mode_off"


@pytest.mark.clause("E8.1")
async def test_who_allows_something_in_mode_off_is_told_what_holds(local: Local) -> None:
    await asked(local, "touch", "ran")
    await settings(local, 'mode = "off"')
    code, out, err = await execd(local, "consent", "allow", "jb_1")
    assert (code, out, err.count("\n")) == (4, "", 1)
    assert "jb_1 does not run, whatever you allow: the mode is off." in err
    assert str(local.daemon.house.paths.settings) in err
    assert denied(await local.final()) == "mode_off"


async def settings(local: Local, text: str) -> None:
    local.daemon.house.paths.settings.write_text(text)
    await say(local, op="reload")
    mode = text.split('"')[1]

    async def look() -> bool:
        return bool((await say(local, op="status"))["mode"] == mode)

    await eventually_awaited(look)


@pytest.mark.clause("E8.1")
async def test_the_mode_changes_while_the_daemon_runs(local: Local) -> None:
    await settings(local, 'mode = "allow"')
    assert (await local.run("true")).ending is Ending.EXITED


async def test_in_mode_off_nothing_runs_and_nothing_is_told(local: Local) -> None:
    await settings(local, 'mode = "off"')
    assert denied(await local.run("true", cwd="/no/such/folder")) == "mode_off"


@pytest.mark.clause("E8.1")
async def test_settings_that_cannot_be_read_allow_nothing(local: Local) -> None:
    local.daemon.house.paths.settings.write_text('mod = "allow"')
    await say(local, op="reload")
    await eventually(lambda: local.daemon.house.rules().problem)
    assert denied(await local.run("true")) == "mode_off"
    assert "Did you mean 'mode'" in (await say(local, op="status"))["problem"]
    _, out, _ = await execd(local, "status")
    assert "problem     " in out
    assert "add one" not in out  # they are listed, and not read


@pytest.mark.clause("E8.1")
async def test_a_mode_of_the_settings_file_is_noticed_like_what_is_in_it(local: Local) -> None:
    house = local.daemon.house
    await asyncio.to_thread(house.paths.settings.chmod, 0o644)
    await eventually(lambda: house.rules().problem)
    await asyncio.to_thread(house.paths.settings.chmod, 0o600)
    await eventually(lambda: not house.rules().problem)


@pytest.mark.clause("E8.6")
async def test_a_profile_that_cannot_be_enforced_is_denied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seccomp, "is_known", lambda: False)
    async with running(tmp_path) as local:
        outcome = await local.run("true", confinement=Confinement.WORKSPACE_NO_NETWORK)
        assert denied(outcome) == "confinement_unavailable"


@pytest.mark.clause("E8.1", "E8.2")
async def test_in_mode_allow_a_folder_outside_asks_and_the_worktrees_do_not(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        scratch = tmp_path / "work.worktrees/one"
        scratch.mkdir(parents=True)
        inside = await local.run("true", cwd=str(scratch), command_id="jb_2")
        assert inside.ending is Ending.EXITED
        question = await asked(local, "true", cwd=str(tmp_path))
        assert question["reason"] == "outside_workspaces"


@pytest.mark.clause("E8.2")
async def test_a_link_in_the_workspace_that_leads_out_of_it_asks(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        (tmp_path / "secret").mkdir()
        (local.root / "link").symlink_to(tmp_path / "secret")
        question = await asked(local, "true", cwd=str(local.root / "link"))
        assert question["cwd"] == json.dumps(str(tmp_path / "secret"))


@pytest.mark.clause("E8.7")
async def test_what_was_decided_and_done_is_in_the_sealed_log(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        await local.run("echo", "hello")
        path = local.daemon.house.paths.audit
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row["event"] for row in rows] == ["command.judged", "command.final"]
        assert rows[0]["argv"] == ["echo", "hello"]
        assert rows[0]["rule"] == "workspace_allowed"
        assert await asyncio.to_thread(first_break, path) is None


@pytest.mark.clause("E10.1")
async def test_a_new_workspace_is_announced_by_the_running_daemon(
    local: Local, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    code, _, _ = await execd(local, "workspace", "add", str(tmp_path / "other"), "--label", "two")
    assert code == 0
    await eventually(lambda: local.heard.workspaces)
    rows = await local.commands.workspaces()
    (first, _), (second, none) = (heard(row.labels) for row in rows)
    assert [row.path for row in rows] == [str(local.root), str(tmp_path / "other")]
    assert (first, second, none) == (("work",), ("two",), ())


@pytest.mark.clause("E8.4")
async def test_consent_is_given_on_the_command_line(local: Local) -> None:
    await asked(local, "true")
    code, out, _ = await execd(local, "consent", "ls", "--json")
    assert (code, json.loads(out)["questions"][0]["argv"]) == (0, '["true"]')
    code, out, _ = await execd(local, "consent", "allow", "jb_")
    assert (code, out) == (0, "jb_1: allow\n")
    assert (await local.final()).ending is Ending.EXITED
    code, _, err = await execd(local, "consent", "deny", "jb_1")
    assert (code, err.count("\n")) == (3, 1)


async def test_the_owner_tries_a_command_by_the_same_rules(local: Local) -> None:
    assert (await execd(local, "try", "--cwd", "/no/such/folder", "ls"))[0] == 1
    trial = await tried(local, "echo", "-n", "hello")
    await eventually(local.daemon.house.consent.questions)
    assert await local.commands.inventory() == ()  # the hub hears nothing of it
    (question,) = local.daemon.house.consent.questions()
    assert question.argv == ("echo", "-n", "hello")
    assert trial.stderr is not None
    told = b""
    while b"execd consent" not in told:  # it is told what to type, before anybody has
        told += await trial.stderr.readline()
    await say(local, op="answer", command_id=question.command_id, answer="allow")
    out, err = await trial.communicate()
    assert (trial.returncode, out) == (0, b"hello")
    assert err.endswith(b": exited 0\n")
    log = await asyncio.to_thread(local.daemon.house.paths.audit.read_text)
    assert question.command_id in log
    await eventually(lambda: local.daemon.house.spool.is_done(question.command_id))
    with pytest.raises(RemoteError):
        await say(local, op="tried", command_id="jb_1")


async def test_a_trial_that_is_denied_says_so(local: Local) -> None:
    trial = await tried(local, "touch", "ran")
    await eventually(local.daemon.house.consent.questions)
    assert (await execd(local, "consent", "deny", "try_"))[0] == 0
    _, err = await trial.communicate()
    assert (trial.returncode, b"denied owner_denied" in err) == (1, True)
    assert not (local.root / "ran").exists()


async def test_status_tells_mode_workspaces_and_open_commands(local: Local) -> None:
    await asked(local, "true")
    code, out, _ = await execd(local, "status", "--json")
    found = json.loads(out)
    assert (code, found["mode"], found["questions"]) == (0, "ask", 1)
    assert found["commands"][0]["state"] == "awaiting_consent"
    assert found["workspaces"] == [{"path": str(local.root), "label": "work"}]


@pytest.mark.clause("E8.4")
async def test_the_socket_is_the_owners_alone(local: Local) -> None:
    path = local.daemon.house.paths.socket
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.clause("E8.4")
async def test_a_command_cannot_answer_for_its_owner(local: Local) -> None:
    await settings(local, 'mode = "allow"')
    home = str(local.daemon.house.paths.config)
    program = [sys.executable, "-m", "upright_execd", "--home", home, "status"]
    for number, before in enumerate([[], ["env", "-i"], ["setsid", "--wait", "env", "-i"]]):
        command_id = f"jb_{number}"
        outcome = await local.run(*before, *program, command_id=command_id)
        assert outcome.number == 5
    assert (await execd(local, "status"))[0] == 0


async def test_a_question_that_is_none_gets_a_sentence(local: Local) -> None:
    with pytest.raises(RemoteError) as caught:
        await say(local, op="dance")
    assert caught.value.status == 2


def test_without_a_daemon_the_answer_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotRunningError, match="execd run"):
        ask(paths_in(tmp_path), {"op": "status"})


@pytest.mark.clause("E8.3", "E8.4")
async def test_always_lets_this_very_argv_run_here_and_nothing_else(local: Local) -> None:
    question = await asked(local, "touch", "ran")
    assert question["always"]["argv"] == ["touch", "ran"]
    code, out, _ = await execd(local, "consent", "allow", "jb_1", "--always")
    assert (code, out) == (0, "jb_1: always\n")
    assert (await local.final()).ending is Ending.EXITED
    await eventually(lambda: local.daemon.house.rules().argv_rules)
    assert (await local.run("touch", "ran", command_id="jb_2")).ending is Ending.EXITED
    for number, argv in enumerate((["touch", "other"], ["touch", "ran", "x"]), start=3):
        await local.commands.exec(local.order(*argv, command_id=f"jb_{number}"))
        await local.reached(f"jb_{number}", State.AWAITING_CONSENT)
    inner = local.root / "inner"
    inner.mkdir()
    await local.commands.exec(local.order("touch", "ran", command_id="jb_9", cwd=str(inner)))
    await local.reached("jb_9", State.AWAITING_CONSENT)


@pytest.mark.case("CVE-2026-29607")
@pytest.mark.clause("E8.3")
@pytest.mark.parametrize("argv", [["sh", "-c", "ls"], ["env", "ls"], ["python3", "-c", "1"]])
async def test_for_a_wrapper_always_is_not_offered(local: Local, argv: list[str]) -> None:
    question = await asked(local, *argv)
    assert "runs whatever its arguments say" in question["always"]
    code, _, err = await execd(local, "consent", "allow", "jb_1", "--always")
    assert (code, "can't be allowed for always" in err) == (2, True)
    assert (await local.reached("jb_1", State.AWAITING_CONSENT)).outcome is None


@pytest.mark.clause("E4.2", "E8.3")
async def test_what_a_rule_allowed_is_the_file_that_was_judged(
    local: Local, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, said in (("good", "good"), ("evil", "evil")):
        (tools / name).write_text(f"#!/bin/sh\necho {said}\n", encoding="ascii")
        (tools / name).chmod(0o755)
    link = tools / "tool"
    link.symlink_to(tools / "good")
    rule = ArgvRule(program=str(tools / "good"), argv=(str(link),))
    await asyncio.to_thread(argvrules.add, local.daemon.house.paths.rules, rule)
    await say(local, op="reload")
    await eventually(lambda: local.daemon.house.rules().argv_rules)
    await local.run(str(link))
    assert await local.output() == [b"good\n"]
    link.unlink()
    link.symlink_to(tools / "evil")
    await local.commands.exec(local.order(str(link), command_id="jb_2"))
    await local.reached("jb_2", State.AWAITING_CONSENT)


@pytest.mark.clause("E8.1")
async def test_in_mode_ask_a_confined_command_in_a_workspace_runs_unasked(local: Local) -> None:
    if Confinement.WORKSPACE not in local.daemon.house.enforceable:
        skip_or_fail("landlock", "kernel: Landlock ABI 3 (Linux 6.2)")
    outcome = await local.run("touch", "ran", confinement=Confinement.WORKSPACE)
    assert (outcome.ending, outcome.number) == (Ending.EXITED, 0)


@pytest.mark.clause("E8.1")
async def test_in_mode_read_only_nothing_else_runs(tmp_path: Path) -> None:
    async with running(tmp_path, ('mode = "read_only"',)) as local:
        assert denied(await local.run("true")) == "mode_read_only"
        if Confinement.READ_ONLY not in local.daemon.house.enforceable:
            skip_or_fail("landlock", "kernel: Landlock ABI 3 (Linux 6.2)")
        outcome = await local.run("ls", command_id="jb_2", confinement=Confinement.READ_ONLY)
        assert outcome.number == 0


@pytest.mark.clause("E8.1")
async def test_in_mode_full_a_folder_outside_does_not_ask(tmp_path: Path) -> None:
    async with running(tmp_path, ('mode = "full"',)) as local:
        assert (await local.run("true", cwd=str(tmp_path))).ending is Ending.EXITED
