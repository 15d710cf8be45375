from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from upright_execd import cli, network
from upright_execd.audit import Audit
from upright_execd.cli import VERBS, execd
from upright_execd.clock import SystemClock
from upright_execd.daemon import alone
from upright_execd.paths import make_private, paths_in
from upright_execd.pinned import Pinned, save

HEAVY = {"websockets", "cryptography", "keyring", "asyncio"}


def run(home: Path, *args: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.run(["--home", str(home), *args])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.clause("E9.1")
def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from upright_execd.cli import run; run(['--help']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert not HEAVY & {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.clause("E9.1")
@pytest.mark.parametrize("name", VERBS)
def test_each_verb_has_help_that_begins_as_in_the_list(name: str) -> None:
    done = CliRunner().invoke(execd, [name, "--help"])
    assert done.exit_code == 0
    assert f"\n\n  {VERBS[name].split()[0]} " in done.output


@pytest.mark.parametrize("args", [["bogus"], ["consent", "bogus"], ["workspace", "add"], ["-x"]])
def test_a_wrong_call_exits_2(
    args: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(tmp_path, *args, capsys=capsys)
    assert (code, "Try '" in err) == (2, True)


@pytest.mark.parametrize("args", [["status"], ["consent", "ls"], ["consent", "allow", "jb_1"]])
def test_without_a_daemon_it_exits_5_and_says_what_to_run(
    args: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(tmp_path, *args, capsys=capsys)
    assert (code, err.count("\n"), "execd run" in err) == (5, 1, True)


@pytest.mark.clause("E9.1")
@pytest.mark.parametrize("by", ["hub", "owner"])
@pytest.mark.parametrize("args", [["try", "ls"], ["run"]])
def test_after_a_revocation_it_says_so_and_how_to_pair_again(
    by: str, args: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = paths_in(tmp_path)
    network.remember(paths, replace(PINNED, key_file=str(tmp_path / "key")))
    network.forget(paths, by=by)
    code, _, err = run(tmp_path, *args, capsys=capsys)
    assert (code in {3, 5}, err.count("\n")) == (True, 1)
    who = "The hub" if by == "hub" else "You"
    assert f"{who} revoked this machine's pairing with {PINNED.host}." in err
    assert "execd pair HUB" in err


def test_run_without_a_pairing_exits_3_and_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(tmp_path, "run", capsys=capsys)
    assert (code, "execd pair HUB" in err) == (3, True)


def test_run_with_wrong_settings_exits_2_and_names_the_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "execd.toml").write_text("mod = 1", encoding="ascii")
    (tmp_path / "execd.toml").chmod(0o600)
    code, _, err = run(tmp_path, "run", capsys=capsys)
    assert (code, "'mod'" in err, "'mode'" in err) == (2, True, True)


PINNED = Pinned(
    url="ws://127.0.0.1:9/v1/device",
    host="127.0.0.1:9",
    hub_id="hb_1",
    hub_key=bytes(32),
    device_id="dv_1",
    key_file="/nowhere",
)


@pytest.mark.clause("E7.9")
def test_a_second_daemon_exits_75_and_names_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    save(tmp_path / "hub.json", PINNED)
    (tmp_path / "execd.toml").write_text("as_root = true", encoding="ascii")
    (tmp_path / "execd.toml").chmod(0o600)
    with alone(paths_in(tmp_path)):
        code, _, err = run(tmp_path, "run", capsys=capsys)
    assert (code, "Another execd (process" in err) == (75, True)


@pytest.mark.clause("E8.6")
def test_as_root_it_does_not_run_unless_its_owner_wrote_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "hub.json", PINNED)
    monkeypatch.setattr("os.getuid", lambda: 0)
    code, _, err = run(tmp_path, "run", capsys=capsys)
    assert (code, "as_root = true" in err) == (2, True)


def test_rules_are_added_listed_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    added = run(tmp_path, "rules", "add", "--cwd", "/", "git", "status", "-s", "**", capsys=capsys)
    assert added[0] == 0
    _, out, _ = run(tmp_path, "rules", "ls", "--json", capsys=capsys)
    (row,) = json.loads(out)["rules"]
    assert Path(row["program"]).is_absolute()
    assert (row["argv"], row["cwd"]) == (["git", "status", "-s", "**"], "/")
    assert run(tmp_path, "rules", "rm", "1", capsys=capsys)[0] == 0
    assert run(tmp_path, "rules", "rm", "1", capsys=capsys)[0] == 3


@pytest.mark.clause("E8.3")
@pytest.mark.parametrize("argv", [["env", "ls"], ["sh", "-c", "ls"], ["/usr/bin/env", "**"]])
def test_a_rule_for_a_wrapper_is_refused_with_a_reason(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(tmp_path, "rules", "add", *argv, capsys=capsys)
    assert (code, "runs whatever its arguments say" in err) == (2, True)
    assert not (tmp_path / "rules.json").exists()


@pytest.mark.case("daemon/escapes")
@pytest.mark.clause("E8.7")
def test_the_log_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]52;c;AAAA\x07\u202e\x9b2J\x7f\n\r"
    audit = Audit(paths_in(tmp_path).audit, SystemClock())
    make_private(tmp_path / "state")
    audit.write("command.judged", argv=[evil], cwd=evil, **{evil: 1})
    code, out, _ = run(tmp_path, "log", capsys=capsys)
    assert (code, out.count("\n")) == (0, 1)
    assert all(32 <= ord(letter) < 127 for letter in out.rstrip("\n"))
    assert run(tmp_path, "log", "--verify", capsys=capsys)[0] == 0
    path = paths_in(tmp_path).audit
    path.write_text(path.read_text(encoding="ascii").replace("judged", "denied"), encoding="ascii")
    code, _, err = run(tmp_path, "log", "--verify", capsys=capsys)
    assert (code, "line 1" in err) == (1, True)
    path.write_text("no json\n", encoding="ascii")
    assert "line.broken" in run(tmp_path, "log", "-n", "1", "--jsonl", capsys=capsys)[1]


@pytest.mark.clause("E8.7")
def test_revoke_wipes_the_key_and_the_pairing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    key.write_text("00" * 32, encoding="ascii")
    save(tmp_path / "hub.json", replace(PINNED, key_file=str(key)))
    code, out, _ = run(tmp_path, "revoke", capsys=capsys)
    assert (code, "upright device revoke dv_1" in out) == (0, True)
    assert not key.exists()
    assert not (tmp_path / "hub.json").exists()
    ended = json.loads(run(tmp_path, "log", "--jsonl", capsys=capsys)[1])
    assert (ended["event"], ended["device"], ended["by"]) == ("pairing.ended", "dv_1", "owner")
    assert run(tmp_path, "revoke", capsys=capsys)[0] == 3


def test_workspaces_are_added_listed_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "repo").mkdir()
    home = tmp_path / "home"
    assert run(home, "workspace", "add", str(tmp_path / "repo"), capsys=capsys)[0] == 0
    _, out, _ = run(home, "workspace", "ls", "--json", capsys=capsys)
    (row,) = json.loads(out)["workspaces"]
    assert (row["path"], row["label"], row["is_in_place"]) == (str(tmp_path / "repo"), "repo", True)
    assert run(home, "workspace", "rm", "repo", capsys=capsys)[0] == 0
    assert run(home, "workspace", "rm", "repo", capsys=capsys)[0] == 3


@pytest.mark.clause("E9.3")
def test_doctor_gives_each_failure_evidence_and_a_fix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(tmp_path, "doctor", "--json", capsys=capsys)
    checks = {check["id"]: check for check in json.loads(out)["checks"]}
    assert code == 1
    assert checks["hub"]["fix"] == "execd pair HUB"
    assert checks["workspaces"]["fix"] == "execd workspace add PATH"
    assert checks["settings"]["verdict"] == "ok"
    assert all(check["fix"] for check in checks.values() if check["verdict"] != "ok")
    assert all(check["evidence"] for check in checks.values())
