from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from upright_execd import login
from upright_execd.login import MARK, capture, parse


class User:
    """A row of the password file."""

    def __init__(self, home: Path, shell: str = "/bin/bash") -> None:
        self.pw_dir, self.pw_shell, self.pw_name = str(home), shell, "somebody"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pwd, "getpwuid", lambda _user: User(tmp_path))
    return tmp_path


@pytest.mark.case("OC/40659")
@pytest.mark.clause("E8.5")
def test_commands_get_what_the_login_shell_exports(home: Path) -> None:
    (home / ".bash_profile").write_text(
        "echo welcome; export PATH=$HOME/brew/bin:$PATH N='a\nb'\n", encoding="ascii"
    )
    found = capture({"LANG": "C.UTF-8", "SECRET_OF_THE_SERVICE": "x"})
    assert found is not None
    assert found["PATH"].startswith(f"{home}/brew/bin:")
    assert (found["N"], found["LANG"], found["USER"]) == ("a\nb", "C.UTF-8", "somebody")
    assert not {"SECRET_OF_THE_SERVICE", "SHLVL", "PWD", login.CAPTURE_VARIABLE} & set(found)


def test_a_shell_that_fails_when_it_is_interactive_is_asked_again(home: Path) -> None:
    (home / ".bash_profile").write_text(
        "case $- in *i*) exit 3;; esac; export N=1\n", encoding="ascii"
    )
    found = capture({})
    assert found is not None
    assert found["N"] == "1"


def test_a_shell_that_hangs_is_not_waited_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "BOUND_S", 0.4)
    (home / ".bash_profile").write_text("sleep 79\n", encoding="ascii")
    assert capture({}) is None


@pytest.mark.parametrize("shell", ["/usr/sbin/nologin", "/bin/false", "/no/bash"])
def test_what_is_no_shell_is_not_asked(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", lambda _user: User(tmp_path, shell))
    assert capture({}) is None


@pytest.mark.parametrize("said", [b"", b"PATH=/x\0", f"\0{MARK}\0".encode(), b"\0other\0A=1\0"])
def test_what_does_not_say_the_mark_says_nothing(said: bytes) -> None:
    assert parse(said) is None
