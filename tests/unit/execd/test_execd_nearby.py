"""Nearby: which token files count, which hubs are here, and what a hub that lies gets."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from upright_execd import nearby, pinned
from upright_execd.address import read_address
from upright_execd.pairing import PairingError, Shown
from upright_execd.paths import make_private, own_hub, paths_in

SHOWN = Shown(code="QLXW-XBTC", digits="805505", hub_id="hb_1", hub_key_id="k", expires_s=600)


def _file(tmp_path: Path, text: str, mode: int = 0o600) -> Path:
    path = tmp_path / "api.token"
    path.touch(mode=mode)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.clause("E1.6")
def test_the_token_is_the_word_in_the_file(tmp_path: Path) -> None:
    assert nearby.read_token(_file(tmp_path, "up_abc-DEF_1\n")) == "up_abc-DEF_1"


@pytest.mark.clause("E1.6")
@pytest.mark.parametrize("mode", [0o604, 0o620, 0o660, 0o601])
def test_a_file_that_others_reach_counts_for_nothing(tmp_path: Path, mode: int) -> None:
    with pytest.raises(PairingError, match="nobody else can read"):
        nearby.read_token(_file(tmp_path, "word", mode))


@pytest.mark.clause("E1.6")
def test_a_symlink_to_a_file_is_not_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(_file(tmp_path, "word"))
    with pytest.raises(PairingError, match="Can't read"):
        nearby.read_token(link)


def test_a_pipe_is_no_token_file_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(PairingError, match="must be a file"):
        nearby.read_token(tmp_path / "pipe")


@pytest.mark.parametrize("text", ["", "two words", "ünïcode", "a\nb"])
def test_what_is_no_word_is_no_token(tmp_path: Path, text: str) -> None:
    with pytest.raises(PairingError, match="does not hold"):
        nearby.read_token(_file(tmp_path, text))


@pytest.mark.clause("E1.6")
@pytest.mark.parametrize("hub", ["https://hub.example.org", "https://127.0.0.1", "https://[::1]"])
def test_a_hub_that_is_elsewhere_or_may_be_gets_no_token(hub: str) -> None:
    with pytest.raises(PairingError, match="not on this machine"):
        nearby.check_here(read_address(hub))


@pytest.mark.parametrize("hub", ["http://127.0.0.1:8765", "http://localhost", "http://[::1]:80"])
def test_a_hub_on_this_machine_may_have_it(hub: str) -> None:
    nearby.check_here(read_address(hub))


class _Liar(BaseHTTPRequestHandler):
    """Answers with what the test says, and keeps what was asked."""

    status: ClassVar[int] = 200
    said: ClassVar[bytes] = b"{}"
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.said)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _lying(status: int, said: object) -> Iterator[tuple[str, list[str]]]:
    class Here(_Liar):
        pass

    Here.status, Here.said, Here.asked = status, json.dumps(said).encode(), []
    server = HTTPServer(("127.0.0.1", 0), Here)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", Here.asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.clause("E1.6")
def test_other_digits_at_the_hub_approve_nothing() -> None:
    with _lying(200, {"digits": "805506", "bound_hash": "x"}) as (url, asked):
        with pytest.raises(PairingError, match="digits differ"):
            nearby.approve(read_address(url), "word", SHOWN)
        assert asked == ["GET /v1/pairings/QLXW-XBTC"]


@pytest.mark.parametrize(
    ("status", "said", "told"),
    [
        (401, {"detail": "send the token"}, "send the token"),
        (200, ["no object"], "200"),
        (500, {}, "500"),
    ],
)
def test_a_refusal_is_told_in_one_sentence(status: int, said: object, told: str) -> None:
    with (
        _lying(status, said) as (url, _),
        pytest.raises(PairingError, match=f"does not approve it: {told}"),
    ):
        nearby.approve(read_address(url), "word", SHOWN)


def test_a_hub_that_is_not_there_is_told() -> None:
    with pytest.raises(PairingError, match="did not say"):
        nearby.approve(read_address("http://127.0.0.1:9"), "word", SHOWN)


@pytest.mark.clause("E8.6")
def test_what_no_confined_command_reads_is_the_key_wherever_it_is_and_a_hub_of_ones_own(
    tmp_path: Path,
) -> None:
    paths = paths_in(tmp_path / "home")
    make_private(paths.config)
    key = tmp_path / "elsewhere" / "device.key"
    hub = pinned.Pinned(
        url="ws://127.0.0.1/v1/device",
        host="127.0.0.1",
        hub_id="hb_1",
        hub_key=b"k" * 32,
        device_id="dv_1",
        key_file=str(key),
    )
    pinned.save(paths.pairing, hub)
    assert set(pinned.hidden(paths)) == {paths.config, paths.state, own_hub(), key}
