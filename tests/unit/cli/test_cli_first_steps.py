"""What goes wrong at a first start is one sentence with what to do (S1)."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.cli_hub import Terminal
from upright.cli.errors import Exit, sentence_of
from upright.cli.serve import address_refused

WHERE = "127.0.0.1:8080"


@pytest.mark.parametrize("number", [errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES])
def test_an_address_that_can_not_be_had_names_it_and_a_way_out(number: int) -> None:
    error = OSError(number, f"{os.strerror(number)} (while attempting to bind on address …)")
    refused = address_refused(error, WHERE)
    assert refused is not None
    assert str(refused) == (
        f"can't listen on {WHERE}: {os.strerror(number)}; "
        "stop what listens there, or choose another hub.port or --port"
    )
    assert refused.exit_code is Exit.FAILED


def test_a_file_that_can_not_be_read_is_not_taken_for_an_address() -> None:
    error = PermissionError(errno.EACCES, "Permission denied", "/home/ann/api.token")
    assert address_refused(error, WHERE) is None
    assert sentence_of(error) == (
        "/home/ann/api.token: Permission denied; "
        "it must belong to whoever runs this; ls -l shows whose it is"
    )


def test_a_full_disk_says_to_make_room() -> None:
    error = OSError(errno.ENOSPC, "No space left on device")
    assert sentence_of(error).endswith("; make room on that disk, and try again")


def test_where_the_database_can_not_be_written_whole_it_is_a_sentence(home: Path) -> None:
    program = [sys.executable, "-m", "upright", "init"]
    bounded = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", *program]  # 32 or 64 kB
    environment = {
        "UPRIGHT_HOME": str(home),
        "PATH": os.defpath,
        "PYTHONDONTWRITEBYTECODE": "1",  # a file that is cut off would be read later
    }
    done = subprocess.run(bounded, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (Exit.TRY_AGAIN, 1)
    assert str(home / "upright.db") in done.stderr
    assert "is there room on its disk?" in done.stderr


def test_init_stays_what_it_was_when_it_is_run_again(home: Path, upright: Terminal) -> None:
    assert upright("init").out.count("made ") == 4
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    again = upright("init")
    assert (again.code, "made " in again.out) == (0, False)
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
