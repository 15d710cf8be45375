from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from upright_execd.shim.kin import start_time
from upright_execd.shim.records import (
    CANCEL,
    CONTROL,
    EXIT,
    RUNNING,
    STARTED,
    render,
    write,
)
from upright_execd.spool import orphans
from upright_execd.spool.accepted import Accepted, Receipt
from upright_execd.spool.folder import Folder
from upright_execd.spool.outcome import RECEIPT_DAMAGED, from_pairs, unstarted
from upright_execd.spool.store import Spool, folder_name
from upright_execd.spool.telling import gone
from upright_wire.command import Ending, Omitted, Outcome, Process, Started, Stream, Totals
from upright_wire.spec import Confinement, Spec

SPEC = Spec(argv=("true",), cwd="/", confinement=Confinement.NONE)


def accepted(command_id: str = "jb_1") -> Accepted:
    return Accepted(
        command_id=command_id,
        digest="d",
        session="s",
        lease_epoch=1,
        spec=SPEC,
        os_boot_id="boot",
        env_dropped=("FOO",),
    )


def receipt(command_id: str = "jb_1") -> Receipt:
    return Receipt(command_id=command_id, digest="d", outcome=unstarted(Ending.CANCELLED))


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    spool = Spool(tmp_path, "boot")
    spool.make()
    return spool


@pytest.mark.clause("E5.1")
def test_what_was_accepted_comes_back_as_it_was(spool: Spool) -> None:
    with spool.accepting(accepted()):
        assert [found.accepted for found in spool.load()] == [accepted()]


@pytest.mark.clause("E5.3", "E7.2")
def test_what_no_shim_ever_took_is_swept_away_unless_the_power_was_cut(spool: Spool) -> None:
    before_the_cut = replace(accepted(), command_id="jb_2", os_boot_id="an earlier one")
    for one in (accepted(), before_the_cut):
        with spool.accepting(one):
            pass
    assert [found.accepted for found in spool.load()] == [before_the_cut]
    assert not spool.folder("jb_1").path.exists()


@pytest.mark.clause("E7.6")
@pytest.mark.parametrize("mark", [STARTED, EXIT])
def test_what_a_shim_took_is_held_whatever_became_of_the_shim(spool: Spool, mark: str) -> None:
    folder = spool.folder("jb_1")
    with spool.accepting(accepted()):
        pass
    write(str(folder.path), mark, [("pid", "1")])
    assert [found.accepted for found in spool.load()] == [accepted()]


@pytest.mark.clause("E5.2", "E7.6")
def test_while_somebody_holds_the_lock_there_is_a_shim(spool: Spool) -> None:
    folder = spool.folder("jb_1")
    assert not folder.has_shim()
    with spool.accepting(accepted()) as (_, lock):
        inherited = os.dup(lock)
    assert folder.has_shim()
    os.close(inherited)
    assert not folder.has_shim()


def test_two_cannot_accept_the_same_command_at_a_time(spool: Spool) -> None:
    with (
        spool.accepting(accepted()),
        pytest.raises(BlockingIOError),
        spool.accepting(accepted()),
    ):
        pass


@pytest.mark.clause("E5.1")
def test_everything_is_the_owners_alone(spool: Spool) -> None:
    folder = spool.folder("jb_1")
    with spool.accepting(accepted()):
        folder.write_stdin(0, b"x")
        folder.cancel()
    assert folder.path.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o077 for path in folder.path.iterdir()}
    assert {CONTROL, CANCEL, "spec", "stdin", "lock"} <= set(modes)
    assert set(modes.values()) == {0}


def test_a_folder_that_cannot_be_read_is_left_alone(spool: Spool) -> None:
    with spool.accepting(accepted()):
        pass
    (spool.folder("jb_1").path / "spec").write_text('{"later": "version"}\n', encoding="ascii")
    assert list(spool.load()) == []
    assert spool.folder("jb_1").path.exists()


@pytest.mark.clause("E4.3")
def test_the_done_keep_their_receipt_until_it_is_old(spool: Spool) -> None:
    for name in ("jb_1", "jb_2"):
        spool.folder(name).write_receipt(receipt(name))
        spool.retire([receipt(name)])
    old = datetime(2026, 1, 1, tzinfo=UTC)
    (path,) = Path(spool.folder("jb_1").path.parents[1]).glob("done/jb_1/receipt")
    os.utime(path, (old.timestamp(), old.timestamp()))
    assert spool.prune(old + timedelta(days=1)) == 1
    assert not spool.is_too_old("jb_1")  # such an id has no time
    assert spool.done("jb_1") is None
    kept = spool.done("jb_2")
    assert kept is not None
    assert (kept.digest, kept.is_acknowledged) == ("d", True)


def test_retiring_twice_leaves_one_receipt(spool: Spool) -> None:
    for _ in range(2):
        spool.folder("jb_1").write_stdin(0, b"leftover")
        spool.retire([receipt()])
    assert spool.done("jb_1") is not None
    assert list(spool.load()) == []


@pytest.mark.clause("E4.3")
def test_a_damaged_receipt_still_says_that_the_id_was_used(spool: Spool) -> None:
    spool.retire([receipt()])
    (spool.folder("jb_1").path.parents[1] / "done/jb_1/receipt").write_text("{", encoding="ascii")
    found = spool.done("jb_1")
    assert found is not None
    assert (found.digest, found.outcome.ending) == (RECEIPT_DAMAGED, Ending.LOST)


@pytest.mark.clause("E5.5")
def test_room_is_bounded_by_the_quota_and_by_the_disk(spool: Spool) -> None:
    spool.folder("jb_1").write_stdin(0, b"x" * 600)
    assert spool.has_room(400, quota_bytes=1000, min_free_percent=0)
    assert not spool.has_room(401, quota_bytes=1000, min_free_percent=0)
    assert not spool.has_room(0, quota_bytes=1000, min_free_percent=101)


def test_epochs_survive_and_the_sessions_heard_of_last_are_kept(spool: Spool) -> None:
    assert spool.epochs() == {}
    spool.write_epochs({f"se_{n}": n for n in range(10_001)})
    kept = spool.epochs()
    assert (len(kept), "se_0" in kept, kept["se_10000"]) == (10_000, False, 10_000)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "", "-rf", "a" * 81, "ü", "\ud800", "a b"])
def test_an_id_that_is_no_plain_name_gets_one(name: str) -> None:
    safe = folder_name(name)
    assert safe.startswith("x-")
    assert safe.isascii()
    assert "/" not in safe


def test_a_plain_id_is_its_own_name() -> None:
    assert folder_name("jb_01hxyz.A-9") == "jb_01hxyz.A-9"


# ------------------------------------------------------------------ marks and outcomes
@pytest.mark.clause("E4.4")
def test_a_final_record_becomes_the_outcome_it_means() -> None:
    pairs = [
        ("ending", "signaled"),
        ("started", "yes"),
        ("number", "9"),
        ("elapsed_ms", "12"),
        ("pipe_held", "1"),
        ("cpu_ms", "3"),
        ("peak_memory_bytes", "4096"),
        ("out.total", "100"),
        ("out.head", "10"),
        ("out.kept", "20"),
        ("out.sha256", "aa"),
        ("survivor", "7 a b"),
        ("survivor", "8 c"),
    ]
    assert from_pairs(pairs, ("FOO",)) == Outcome(
        ending=Ending.SIGNALED,
        started=Started.YES,
        number=9,
        stdout=Totals(bytes=100, sha256="aa", omitted=(Omitted(offset=10, count=70),)),
        survivors=(Process(pid=7, name="a b"), Process(pid=8, name="c")),
        pipe_held=True,
        env_dropped=("FOO",),
        elapsed_ms=12,
        cpu_ms=3,
        peak_memory_bytes=4096,
    )


@pytest.mark.parametrize(
    "pairs", [[], [("ending", "melted"), ("started", "yes")], [("ending", "exited")]]
)
def test_a_final_record_that_means_nothing_is_none(
    spool: Spool, pairs: list[tuple[str, str]]
) -> None:
    with spool.accepting(accepted()):
        pass
    (spool.folder("jb_1").path / EXIT).write_bytes(render(pairs))
    marks = spool.folder("jb_1").marks()
    assert marks.exit == pairs
    assert spool.outcome(accepted(), marks) is None


@pytest.mark.clause("E5.3", "E7.8")
@pytest.mark.parametrize(
    ("names", "boot", "started"),
    [
        ((), "boot", Started.NO),
        ((), "other", Started.UNKNOWN),
        ((STARTED,), "boot", Started.UNKNOWN),
        ((STARTED,), "other", Started.UNKNOWN),
        ((STARTED, RUNNING), "boot", Started.YES),
        ((STARTED, RUNNING), "other", Started.YES),
    ],
)
def test_what_is_lost_started_as_far_as_its_marks_say(
    tmp_path: Path, names: tuple[str, ...], boot: str, started: Started
) -> None:
    spool = Spool(tmp_path, boot)
    spool.make()
    folder = spool.folder("jb_1")
    with spool.accepting(accepted()):
        for name in names:
            (folder.path / name).write_bytes(render([("pid", "7"), ("start_time", "1")]))
    outcome = spool.lost(accepted(), folder.marks())
    assert (outcome.started, outcome.env_dropped) == (started, ("FOO",))
    assert outcome.text == ("shim_died" if boot == "boot" else "host_reboot")


def sleeper(**variables: str) -> int:
    env = {"PATH": os.defpath, **variables}
    return os.posix_spawnp("sleep", ["sleep", "75"], env, setpgroup=0)


def test_orphans_are_killed_only_if_they_are_the_very_same_process(tmp_path: Path) -> None:
    pid = sleeper()
    record = [("pid", str(pid)), ("start_time", "another")]
    (tmp_path / RUNNING).write_bytes(render(record))
    orphans.kill(tmp_path)
    assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    (tmp_path / RUNNING).write_bytes(render([record[0], ("start_time", start_time(pid))]))
    orphans.kill(tmp_path)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == 9


@pytest.mark.clause("E7.7")
def test_orphans_that_nobody_wrote_down_are_found_by_their_mark(tmp_path: Path) -> None:
    others = sleeper(UPRIGHT_COMMAND_FOLDER=f"{tmp_path}1")
    ours = sleeper(UPRIGHT_COMMAND_FOLDER=str(tmp_path))
    orphans.kill(tmp_path)
    assert os.WTERMSIG(os.waitpid(ours, 0)[1]) == 9
    assert os.waitpid(others, os.WNOHANG) == (0, 0)
    os.kill(others, 9)
    os.waitpid(others, 0)


def test_a_cancel_that_nobody_listens_to_leaves_its_mark(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    os.mkfifo(tmp_path / CONTROL)
    folder.cancel()
    folder.cancel()
    assert (tmp_path / CANCEL).exists()


@pytest.mark.clause("E5.5")
def test_what_is_gone_is_counted_from_where_one_reads() -> None:
    outcome = Outcome(ending=Ending.EXITED, started=Started.YES, number=0, stdout=Totals(bytes=10))
    assert [gone(outcome, Stream.STDOUT, at).omitted for at in (0, 4, 10, 12)] == [10, 6, 0, 0]
    assert gone(None, Stream.STDERR, 0).end
