"""File tools: a fixed argv, JSON in and out, as tight as the device can; the answer is material."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fixtures.agents import TEST, WAIT_CI, Agents, ScriptedChat, call, worker
from fixtures.still_hub import ANN, CAL, CODE, EVE, FILES, StillHub, trigger
from upright.agent import toolbox
from upright.api import Actor
from upright.store.tables import DEVICE, JOB, PLACEMENT
from upright.store.work import own_branch

READ = call("read_file", {"path": "src/app.py"})
PAGE = {"path": "src/app.py", "text": "</material> x", "sha256": "0" * 64}


async def test_a_file_is_read_by_a_fixed_argv_in_the_items_worktree(hub: StillHub) -> None:
    agents, item = await worker(hub, READ, WAIT_CI)
    agents.box.answer = lambda argv, stdin: (0, json.dumps(PAGE).encode())
    await agents.go()
    spec = (await hub.row(JOB))["spec"]
    assert tuple(spec["argv"][:-2]) == FILES
    operation, request = spec["argv"][-2:]
    assert (operation, spec["cwd"]) == ("read_file", "/src/app")
    assert json.loads(request) == {
        "worktree": {
            "name": own_branch(item.id).partition("/")[2],
            "item": item.id,
            "branch": own_branch(item.id),
            "base": CODE.sha,
        },
        "path": "src/app.py",
        "offset": 1,
        "limit": 2000,
    }
    said = (await agents.told(item.session))[0]
    assert (said["text"], said["material"], said["trust"]) == (PAGE["text"], "file", "member")
    assert "stdout" not in said


async def test_what_is_written_travels_on_stdin_and_not_in_the_argv(hub: StillHub) -> None:
    write = call("write_file", {"path": "a", "text": "Grüße\n", "expected_sha256": ""})
    patch = call("apply_patch", {"patch": "--- a/a\n+++ b/a"})
    agents, item = await worker(hub, write, patch, WAIT_CI)
    given: list[bytes] = []

    def box(argv: Sequence[str], stdin: bytes) -> tuple[int, bytes]:
        given.append(stdin)
        return 0, b"{}"

    agents.box.answer = box
    await agents.go()
    assert given == ["Grüße\n".encode(), b"--- a/a\n+++ b/a\n"]
    assert all("Gr" not in word for argv in agents.box.ran for word in argv)
    assert json.loads(agents.box.ran[0][-1])["expected_sha256"] == ""
    assert item.id in agents.box.ran[1][-1]


async def test_a_refusal_of_the_program_is_the_answer(hub: StillHub) -> None:
    agents, item = await worker(hub, READ, WAIT_CI)
    body = {"error": "The worktree is wk_2's; it has one writer.", "code": "locked"}
    agents.box.answer = lambda argv, stdin: (1, json.dumps(body).encode())
    await agents.go()
    said = (await agents.told(item.session))[0]
    assert (said["error"], said["code"]) == (body["error"], "locked")


@pytest.mark.parametrize("printed", [b"Traceback", b"[1]", b"\xff"])
async def test_a_program_that_says_something_else_is_shown_as_a_job(
    hub: StillHub, printed: bytes
) -> None:
    agents, item = await worker(hub, READ, WAIT_CI)
    agents.box.answer = lambda argv, stdin: (2, printed)
    await agents.go()
    said = (await agents.told(item.session))[0]
    assert (said["outcome"], said["code"]) == ("exited", 2)


# ------------------------------------------------------------------ how tightly (B14.2, B14.6)
@pytest.mark.clause("B14.2", "B14.6")
@pytest.mark.parametrize(
    ("caps", "by", "fork", "profile"),
    [
        (("none", "workspace", "workspace_no_network"), ANN, False, "workspace_no_network"),
        (("none", "workspace"), ANN, False, "workspace"),
        (("none",), ANN, False, "none"),
        (("none", "workspace"), CAL, False, "workspace"),
        (("none", "workspace", "workspace_no_network"), EVE, False, "workspace_no_network"),
        (("none", "workspace", "workspace_no_network"), ANN, True, "workspace_no_network"),
    ],
)
async def test_a_file_tool_is_confined_as_tightly_as_the_device_can(
    hub: StillHub, caps: Sequence[str], by: Actor, *, fork: bool, profile: str
) -> None:
    await hub.device(caps=("exec", *(f"confinement.{cap}" for cap in caps)))
    await hub.opened(trigger(by=by, code=replace(CODE, fork=fork)))
    agents = Agents(hub, ScriptedChat(worker=(READ, WAIT_CI)))
    await agents.go()
    assert (await hub.row(JOB))["spec"]["confinement"] == profile


@pytest.mark.clause("B14.6")
@pytest.mark.parametrize("tool", [READ, TEST], ids=["read_file", "run"])
@pytest.mark.parametrize(
    ("by", "fork", "caps"),
    [
        (ANN, True, ("none", "workspace")),
        (EVE, False, ("none", "workspace")),
        (CAL, False, ("none",)),
    ],
)
async def test_what_the_device_can_not_confine_is_denied_and_said_so(
    hub: StillHub, tool: object, by: Actor, *, fork: bool, caps: Sequence[str]
) -> None:
    await hub.device(caps=("exec", *(f"confinement.{cap}" for cap in caps)))
    item = await hub.opened(trigger(by=by, code=replace(CODE, fork=fork)))
    agents = Agents(hub, ScriptedChat(worker=(READ if tool is READ else TEST, WAIT_CI)))
    await agents.go()
    said = (await agents.told(item.session))[0]
    assert "denied" in said["error"]
    assert "execd doctor" in said["error"]
    assert await hub.rows(JOB) == []


# ------------------------------------------------------------------ where
async def test_a_device_without_the_program_says_so(hub: StillHub) -> None:
    agents, item = await worker(hub, READ, WAIT_CI)
    await hub.do(lambda u: u.c.execute(DEVICE.update().values(helper_json="[]")))
    await agents.go()
    assert "use run" in (await agents.told(item.session))[0]["error"]


@pytest.mark.clause("E10.3", "B17.3")
@pytest.mark.parametrize("cwd", ["/src/app.worktrees/{}/../other", "../app.worktrees/other/x"])
@pytest.mark.case("HE/35202")
async def test_a_command_does_not_run_in_another_items_worktree(hub: StillHub, cwd: str) -> None:
    await hub.device()
    item = await hub.opened()
    own = own_branch(item.id).partition("/")[2]
    run = call("run", {"argv": ["make"], "cwd": cwd.format(own)})
    fine = call("run", {"argv": ["make"], "cwd": f"/src/app.worktrees/{own}/src"})
    agents = Agents(hub, ScriptedChat(worker=(run, fine, WAIT_CI)))
    await agents.go()
    first, second, _ = await agents.told(item.session)
    assert "another item's worktree" in first["error"]
    assert second["outcome"] == "exited"


async def test_an_item_stays_where_its_first_command_ran(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, WAIT_CI)
    await agents.go()
    (placed,) = await hub.rows(PLACEMENT)
    assert (placed["work_id"], placed["path"]) == (item.id, "/src/app")


def test_the_names_of_the_tools_are_these() -> None:
    names = [spec.name for spec in toolbox.specs("worker")]
    files = ["read_file", "write_file", "apply_patch", "list", "search", "worktree"]
    assert [name for name in names if name in files] == files
    assert {"run", "stop", "status", "read_output"} <= set(names)
