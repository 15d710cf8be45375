from __future__ import annotations

from pathlib import Path

import pytest

from upright_execd.errors import SettingsError
from upright_execd.settings import Mode, Settings, load, parse


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.clause("E1.4", "E8.1")
def test_without_a_file_the_owner_is_asked_about_everything(tmp_path: Path) -> None:
    assert load(tmp_path / "execd.toml") == Settings(mode=Mode.ASK)


def test_a_file_sets_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path / "execd.toml", 'mode = "allow"\nenvironment = ["EDITOR"]\n')
    assert load(path) == Settings(mode=Mode.ALLOW, environment=("EDITOR",))


@pytest.mark.clause("E8.1")
def test_a_file_that_others_can_read_is_refused_with_the_command_that_mends_it(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "execd.toml", "", mode=0o644)
    with pytest.raises(SettingsError, match=f"chmod 600 {path}"):
        load(path)


def test_broken_toml_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = write(tmp_path / "execd.toml", "\nmode = \n")
    with pytest.raises(SettingsError, match=r"execd\.toml is not valid TOML.*line 2"):
        load(path)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("mod", "mode"),
        ("Mode", "mode"),
        ("spool_quota", "spool_quota_bytes"),
        ("env", "environment"),
    ],
)
def test_an_unknown_key_names_the_file_and_the_nearest_key(key: str, near: str) -> None:
    with pytest.raises(SettingsError, match=f"here: unknown key '{key}'.*'{near}'"):
        parse({key: 1}, Path("here"))


@pytest.mark.parametrize("mode", Mode)
def test_every_mode_can_be_set(mode: Mode) -> None:
    assert parse({"mode": mode.value}, Path("here")).mode is mode


@pytest.mark.parametrize("value", ["~/.pyenv", ["relative"], ["~"], ["/"], [""], [1]])
def test_readable_folders_are_absolute_and_hold_no_home(value: object) -> None:
    with pytest.raises(SettingsError, match="readable"):
        parse({"readable": value}, Path("here"))


def test_readable_folders_may_start_with_the_home() -> None:
    assert parse({"readable": ["~/.pyenv"]}, Path("here")).readable == (Path.home() / ".pyenv",)


def test_a_misspelt_mode_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match="Did you mean 'allow'"):
        parse({"mode": "alow"}, Path("here"))


@pytest.mark.parametrize("value", [0, -1, "9", 1.5, True, None])
def test_a_number_out_of_its_bounds_is_refused(value: object) -> None:
    with pytest.raises(SettingsError, match="consent_timeout_s"):
        parse({"consent_timeout_s": value}, Path("here"))


@pytest.mark.parametrize("value", ["EDITOR", [1], [""], {}])
def test_names_of_variables_are_a_list_of_texts(value: object) -> None:
    with pytest.raises(SettingsError, match="environment"):
        parse({"environment": value}, Path("here"))
