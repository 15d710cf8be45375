"""Home: the hub's own files are its owner's alone."""

from __future__ import annotations

import stat
from pathlib import Path

from upright.settings.home import Address, Home


def test_the_token_is_made_once_and_is_private(tmp_path: Path) -> None:
    home = Home(folder=tmp_path / "state")
    assert home.read_token() is None
    first = home.make_token()
    assert home.make_token().reveal() == first.reveal()
    assert len(first.reveal()) >= 43
    assert stat.S_IMODE(home.token.stat().st_mode) == 0o600
    assert home.token_is_private()


def test_a_token_that_others_may_read_is_noticed(tmp_path: Path) -> None:
    home = Home(folder=tmp_path)
    home.make_token()
    home.token.chmod(0o640)
    assert not home.token_is_private()


def test_the_address_is_there_while_the_hub_serves(tmp_path: Path) -> None:
    home, address = Home(folder=tmp_path), Address(url="http://127.0.0.1:1", pid=7)
    assert home.read_address() is None
    home.write_address(address)
    assert home.read_address() == address
    home.forget_address()
    assert home.read_address() is None


def test_a_torn_address_is_none(tmp_path: Path) -> None:
    home = Home(folder=tmp_path)
    home.address.write_text('{"url": ', encoding="utf-8")
    assert home.read_address() is None
