"""Both ends of a link, over a socket in memory: the hub's link and the device's conversation."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

import pytest

from fixtures.wire_world import DEVICE_ID, Running, World, order
from upright_wire.command import Ending, Refusal, Started, State, Stream
from upright_wire.errors import IllegalMoveError
from upright_wire.frames import COMMAND_CREDIT_BYTES, CloseCode, Held, Workspace

pytestmark = pytest.mark.looptime


async def test_a_command_runs_and_its_output_and_end_are_stored_whole() -> None:
    world = World()
    world.dispatcher.orders = [order()]
    async with world.linked():
        await world.commands.until(lambda: world.commands.starts)
        world.commands.write("jb_1", b"one\n")
        world.commands.write("jb_1", b"oops\n", Stream.STDERR)
        world.commands.end("jb_1", 3)
        await world.commands.until(lambda: world.commands.forgotten)
    outcome = world.dispatcher.finals["jb_1"]
    assert (outcome.ending, outcome.started, outcome.number) == (Ending.EXITED, Started.YES, 3)
    assert world.dispatcher.output["jb_1", Stream.STDOUT] == b"one\n"
    assert world.dispatcher.output["jb_1", Stream.STDERR] == b"oops\n"
    assert world.commands.forgotten == ["jb_1"]


@pytest.mark.clause("E4.3", "E7.4")
async def test_a_state_is_told_once_and_again_when_the_command_is_sent_again() -> None:
    world = World()
    world.dispatcher.orders = [order()]
    async with world.linked():
        await world.dispatcher.until(lambda: world.dispatcher.states)
        world.commands.tell("jb_1")
        assert world.dispatcher.link is not None
        world.dispatcher.link.send_exec(order())
        await world.dispatcher.until(lambda: len(world.dispatcher.states) == 2)
    assert [report.state for report in world.dispatcher.states] == [State.STARTED, State.STARTED]
    assert world.commands.starts == ["jb_1"]


@pytest.mark.clause("E4.3")
async def test_the_same_id_with_another_spec_is_refused_and_starts_nothing() -> None:
    world = World()
    world.dispatcher.orders = [order()]
    async with world.linked():
        await world.commands.until(lambda: world.commands.starts)
        assert world.dispatcher.link is not None
        world.dispatcher.link.send_exec(order(argv="false"))
        await world.dispatcher.until(lambda: world.dispatcher.refused)
    assert world.dispatcher.refused[0].refusal is Refusal.CONFLICT
    assert world.commands.starts == ["jb_1"]


@pytest.mark.clause("E4.6")
async def test_input_arrives_whole_and_in_order_whatever_its_size() -> None:
    world = World()
    given = bytes(range(256)) * 12_000  # three times the credit
    world.dispatcher.orders = [order(stdin=given), order("jb_2", stdin=b"")]
    world.dispatcher.stdin = {"jb_1": given, "jb_2": b""}
    async with world.linked():
        await world.commands.until(
            lambda: (
                len(world.commands.starts) == 2
                and all(running.has_all_stdin for running in world.commands.held.values())
            )
        )
    assert world.commands.held["jb_1"].stdin == given
    assert world.commands.held["jb_2"].stdin == b""


@pytest.mark.clause("E5.4", "E7.3")
async def test_output_takes_up_at_the_hubs_offset_after_a_cut() -> None:
    world = World()
    world.dispatcher.orders = [order()]
    async with world.linked():
        await world.commands.until(lambda: world.commands.starts)
        world.commands.write("jb_1", b"before ")
        await world.dispatcher.until(lambda: world.dispatcher.output["jb_1", Stream.STDOUT])
    world.commands.write("jb_1", b"meanwhile ")
    async with world.linked():
        await world.dispatcher.until(
            lambda: world.dispatcher.output["jb_1", Stream.STDOUT] == b"before meanwhile "
        )
        world.commands.write("jb_1", b"after")
        world.commands.end("jb_1")
        await world.commands.until(lambda: world.commands.forgotten)
    assert world.dispatcher.output["jb_1", Stream.STDOUT] == b"before meanwhile after"
    assert world.commands.starts == ["jb_1"]


@pytest.mark.clause("E5.4")
async def test_a_final_whose_acknowledgement_was_lost_is_forgotten_by_the_next_sync() -> None:
    world = World()
    world.dispatcher.orders = [order()]
    async with world.linked() as sockets:
        await world.commands.until(lambda: world.commands.starts)
        sockets.hub.tamper = lambda _: None  # whatever the hub says from here on is lost
        world.commands.end("jb_1")
        await world.dispatcher.until(lambda: world.dispatcher.finals)
    async with world.linked():
        await world.commands.until(lambda: world.commands.forgotten)
    assert world.commands.forgotten == ["jb_1"]
    assert len(world.dispatcher.finals) == 1


@pytest.mark.clause("E5.4", "E7.11")
async def test_foreign_commands_are_left_alone() -> None:
    world = World()
    foreign = order("jb_foreign")
    world.dispatcher.orders = [order()]
    async with world.linked():
        await world.commands.until(lambda: world.commands.starts)
    running = Running(order=world.commands.held["jb_1"].order)
    world.commands.held[foreign.command_id] = running
    async with world.linked():
        await world.dispatcher.until(lambda: len(world.dispatcher.inventories) == 2)
        world.commands.end(foreign.command_id)
        world.commands.end("jb_1")
        await world.commands.until(lambda: world.commands.forgotten)
    assert foreign.command_id in world.commands.held
    assert foreign.command_id not in world.dispatcher.finals


@pytest.mark.clause("E5.4", "E6.1")
async def test_cancels_go_out_with_the_sync_and_on_a_live_link() -> None:
    world = World()
    world.dispatcher.cancel = ["jb_unknown"]
    async with world.linked():
        await world.commands.until(lambda: world.commands.cancelled)
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        assert world.dispatcher.link is not None
        world.dispatcher.link.send_cancel("jb_2")
        await world.commands.until(lambda: len(world.commands.cancelled) == 2)
    assert world.commands.cancelled == ["jb_unknown", "jb_2"]


@pytest.mark.clause("E5.5")
async def test_bytes_that_were_not_kept_are_told_as_a_gap() -> None:
    world = World()
    world.dispatcher.orders = [order()]
    async with world.linked():
        await world.commands.until(lambda: world.commands.starts)
        running = world.commands.held["jb_1"]
        running.streams[Stream.STDOUT] = b"head" + bytes(1000) + b"tail"
        running.gaps[Stream.STDOUT] = {4: 1000}
        world.commands.end("jb_1")
        await world.commands.until(lambda: world.commands.forgotten)
    assert world.dispatcher.output["jb_1", Stream.STDOUT] == b"headtail"
    assert world.dispatcher.omitted == [("jb_1", Stream.STDOUT, 4, 1000)]


@pytest.mark.clause("E3.3")
async def test_no_more_than_the_credit_is_under_way() -> None:
    world = World()
    world.dispatcher.orders = [order()]
    world.dispatcher.store_s = 1000
    async with world.linked() as sockets:
        await world.commands.until(lambda: world.commands.starts)
        world.commands.write("jb_1", bytes(3 * COMMAND_CREDIT_BYTES))
        await asyncio.sleep(30)  # virtual
        data = [frame for frame in sockets.device.sent if isinstance(frame, bytes)]
    assert len(data) == COMMAND_CREDIT_BYTES // 65_536


@pytest.mark.clause("E4.4")
async def test_a_spool_that_is_short_of_its_outcome_is_told_as_lost() -> None:
    world = World()
    world.dispatcher.orders = [order()]
    async with world.linked():
        await world.commands.until(lambda: world.commands.starts)
        world.commands.write("jb_1", b"whole")
        world.commands.end("jb_1")
        world.commands.held["jb_1"].streams[Stream.STDOUT] = b"who"
        await world.dispatcher.until(lambda: world.dispatcher.finals)
    outcome = world.dispatcher.finals["jb_1"]
    assert (outcome.ending, outcome.text) == (Ending.LOST, "spool_short")
    assert outcome.stdout.bytes == 3


@pytest.mark.clause("E10.1")
async def test_workspaces_are_announced_after_the_sync_and_when_they_change() -> None:
    world = World()
    world.commands.roots = (Workspace(path="/srv/a"),)
    async with world.linked():
        await world.dispatcher.until(lambda: world.dispatcher.workspaces)
        world.commands.roots = (Workspace(path="/srv/b", remotes=("git@example.org:b.git",)),)
        assert world.commands.listener is not None
        world.commands.listener.workspaces_changed()
        await world.dispatcher.until(lambda: world.dispatcher.workspaces == world.commands.roots)


@pytest.mark.clause("E5.4")
async def test_a_long_inventory_and_its_sync_come_in_parts() -> None:
    world = World()
    world.dispatcher.orders = [order(f"jb_{n}") for n in range(500)]
    async with world.linked():
        await world.commands.until(lambda: len(world.commands.starts) == 500)
    async with world.linked():
        await world.dispatcher.until(lambda: len(world.dispatcher.inventories) == 2)
        world.commands.end("jb_499")
        await world.commands.until(lambda: world.commands.forgotten)
    assert len(world.dispatcher.inventories[1]) == 500
    assert all(isinstance(held, Held) for held in world.dispatcher.inventories[1])


# ------------------------------------------------------------------ its end
@pytest.mark.clause("E1.5")
async def test_revoking_cuts_a_live_link_in_under_a_second() -> None:
    world = World()
    async with world.linked() as sockets:
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        began = world.clock.monotonic()
        assert world.links.revoke(DEVICE_ID)
        end = await sockets.daemon
        await sockets.door
        assert world.clock.monotonic() - began < 1
    assert end.code == CloseCode.REVOKED
    assert not world.links.online()


@pytest.mark.clause("E1.5")
async def test_revoking_cuts_a_link_that_does_not_even_read_in_under_a_second() -> None:
    world = World()
    async with world.linked() as sockets:
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        began = world.clock.monotonic()
        sockets.hub.is_stuck = True
        world.links.revoke(DEVICE_ID)
        await sockets.door
        assert world.clock.monotonic() - began < 1


@pytest.mark.clause("E1.5", "E2.4")
async def test_a_revoked_device_is_told_so_at_its_next_hello() -> None:
    world = World()
    world.roster.revoke(DEVICE_ID)
    async with world.linked() as sockets:
        end = await sockets.daemon
    assert end.code == CloseCode.REVOKED
    assert not world.dispatcher.inventories


@pytest.mark.clause("E2.4")
async def test_an_unknown_device_is_told_that_it_is_not_approved() -> None:
    world = World()
    world.roster.devices.clear()
    async with world.linked() as sockets:
        end = await sockets.daemon
    assert end.code == CloseCode.NOT_APPROVED


@pytest.mark.case("OC/11944")
@pytest.mark.clause("E2.3", "E2.4")
async def test_the_newer_of_two_links_wins() -> None:
    world = World()
    async with world.linked() as older:
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        async with world.linked():
            end = await older.daemon
            assert end.code == CloseCode.SUPERSEDED
            await world.dispatcher.until(lambda: len(world.dispatcher.inventories) == 2)
            assert world.links.online() == {DEVICE_ID}


@pytest.mark.clause("E2.3")
async def test_links_that_flip_often_make_a_clone_suspected() -> None:
    world = World()
    async with contextlib.AsyncExitStack() as stack:
        for count in range(1, 6):
            assert not world.links.is_clone_suspected(DEVICE_ID)
            await stack.enter_async_context(world.linked())
            await world.dispatcher.until(partial(inventories_are, world, count))
    assert world.links.is_clone_suspected(DEVICE_ID)
    assert world.roster.suspected == {DEVICE_ID}
    world.links.clear_suspicion(DEVICE_ID)
    assert not world.links.is_clone_suspected(DEVICE_ID)


@pytest.mark.clause("E2.3")
async def test_links_that_flip_seldom_are_no_clone() -> None:
    world = World()
    async with contextlib.AsyncExitStack() as stack:
        for count in range(1, 9):
            await stack.enter_async_context(world.linked())
            await world.dispatcher.until(partial(inventories_are, world, count))
            await asyncio.sleep(25)  # virtual
    assert not world.links.is_clone_suspected(DEVICE_ID)
    assert not world.roster.suspected


def inventories_are(world: World, count: int) -> bool:
    return len(world.dispatcher.inventories) == count


@pytest.mark.clause("E2.5")
@pytest.mark.parametrize("side", ["hub", "device"])
async def test_a_peer_that_falls_silent_is_dead_after_40_seconds(side: str) -> None:
    world = World()
    async with world.linked() as sockets:
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        began = world.clock.monotonic()
        if side == "hub":
            sockets.device.tamper = lambda _: None
            await sockets.door
        else:
            sockets.hub.tamper = lambda _: None
            end = await sockets.daemon
            assert "silent" in end.reason
        assert 24 < world.clock.monotonic() - began <= 41  # after the last ping or pong


@pytest.mark.clause("E2.5")
async def test_an_idle_link_lives_by_its_pings() -> None:
    world = World()
    async with world.linked() as sockets:
        await asyncio.sleep(3600)  # virtual
        assert not sockets.daemon.done()
        assert world.links.online() == {DEVICE_ID}


@pytest.mark.clause("E2.5")
async def test_a_handler_that_is_slow_does_not_look_like_a_dead_device() -> None:
    world = World()
    world.dispatcher.orders = [order()]
    world.dispatcher.store_s = 100
    async with world.linked():
        await world.commands.until(lambda: world.commands.starts)
        world.commands.write("jb_1", b"x")
        await world.dispatcher.until(
            lambda: world.dispatcher.output["jb_1", Stream.STDOUT], within_s=200
        )
        assert world.links.online() == {DEVICE_ID}


async def test_what_comes_while_the_store_commits_is_stored_with_the_next_commit() -> None:
    world = World()
    world.dispatcher.orders = [order()]
    world.dispatcher.store_s = 1
    printed = bytes(range(256)) * 256 * 40  # forty frames, more than the credit
    async with world.linked():
        await world.commands.until(lambda: world.commands.starts)
        world.commands.write("jb_1", printed)
        world.commands.end("jb_1")
        await world.commands.until(lambda: world.commands.forgotten, within_s=100)
    assert world.dispatcher.output["jb_1", Stream.STDOUT] == printed
    assert world.dispatcher.commits <= 6


@pytest.mark.clause("E5.4")
async def test_what_was_read_before_the_other_side_left_is_still_stored() -> None:
    world = World()
    world.dispatcher.orders = [order()]
    world.dispatcher.store_s = 1
    async with world.linked() as sockets:
        await world.commands.until(lambda: world.commands.starts)
        world.commands.write("jb_1", b"one ")
        world.commands.write("jb_1", b"error", Stream.STDERR)
        world.commands.end("jb_1")
        await asyncio.sleep(0.5)  # virtual: all is said, nothing of it is stored
        sockets.device.abort()
        await world.dispatcher.until(
            lambda: world.dispatcher.output["jb_1", Stream.STDERR], within_s=100
        )
    assert world.dispatcher.output["jb_1", Stream.STDERR] == b"error"


@pytest.mark.clause("E5.4", "E7.2")
async def test_nothing_is_sent_before_the_sync_and_the_caller_learns_it() -> None:
    world = World()
    async with world.linked():
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        link = world.dispatcher.link
    assert link is not None
    with pytest.raises(IllegalMoveError):
        link.send_exec(order())


@pytest.mark.clause("E2.4")
async def test_a_restart_of_the_hub_is_announced() -> None:
    world = World()
    async with world.linked() as sockets:
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        world.links.close_all()
        end = await sockets.daemon
    assert end.code == CloseCode.RESTART
