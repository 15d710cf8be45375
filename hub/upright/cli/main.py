"""The command line: the list of commands; a command's module is imported only when it is used."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from upright.cli.errors import exit_code_of, sentence_of
from upright.cli.lazy import LazyGroup
from upright_wire.version import __version__

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "init": ("upright.cli.init:init", "Write a commented upright.toml, a database and keys."),
    "up": ("upright.cli.serve:up", "Set up what is missing, serve, and say how to pair."),
    "serve": ("upright.cli.serve:serve", "Run the hub until SIGTERM."),
    "demo": (
        "upright.cli.demo.command:demo",
        "Watch a red CI run turn green, all on this machine.",
    ),
    "inbox": ("upright.cli.inbox:inbox", "List triggers, and what became of each."),
    "show": ("upright.cli.inbox:show", "Show whatever has this id."),
    "why": ("upright.cli.why:why", "Show a trigger's whole path, with times and cost."),
    "events": ("upright.cli.events:events", "Follow what happens; judge stored triggers anew."),
    "work": ("upright.cli.work:work", "List and show work items; cancel one."),
    "session": ("upright.cli.session:session", "Read transcripts; say something to a session."),
    "wait": ("upright.cli.wait:wait", "List waits; wake what waits."),
    "outbox": ("upright.cli.outbox:outbox", "List outward effects; send one again."),
    "stats": ("upright.cli.stats:stats", "Say how the hub is doing, in figures."),
    "requests": ("upright.cli.requests:requests", "List what you are asked."),
    "answer": ("upright.cli.requests:answer", "Answer a question."),
    "approve": ("upright.cli.requests:approve", "Approve exactly what was asked."),
    "ask-again": ("upright.cli.requests:ask_again", "Ask once more for what expired."),
    "edit": ("upright.cli.requests:edit", "Change an effect's text, and approve it so."),
    "deny": ("upright.cli.requests:deny", "Deny what was asked."),
    "rules": ("upright.cli.rules:rules", "List, edit and compare the rules of the gate."),
    "agent": ("upright.cli.agent:agent", "List, show and make agents; take in their homes."),
    "people": ("upright.cli.people:people", "List people and roles; join ids; revoke."),
    "sub": ("upright.cli.people:sub", "List, add and remove subscriptions to threads."),
    "login": ("upright.cli.login:login", "Get a one-time link; keep a token for a remote hub."),
    "token": ("upright.cli.token:token", "Make, list and revoke your tokens for the API."),
    "audit": ("upright.cli.audit:audit", "List who did what."),
    "device": ("upright.cli.device:device", "Pair, list and revoke devices."),
    "source": ("upright.cli.source:source", "List, add, test, enable and disable sources."),
    "plugin": ("upright.cli.plugin:plugin", "List plugins: kinds, quality, and what fails."),
    "cost": ("upright.cli.budget:cost", "Add up what everything cost, by what you like."),
    "budget": ("upright.cli.budget:budget", "List and set budgets in tokens, money and calls."),
    "secret": ("upright.cli.secret:secret", "Store secrets in the key ring."),
    "db": ("upright.cli.db:db", "Check, migrate, back up and restore the database."),
    "doctor": ("upright.cli.doctor:doctor", "Check this hub, and say how to fix it."),
    "model": ("upright.cli.model:group", "Probe the model; serve a scripted one."),
    "sandbox": ("upright.cli.sandbox:sandbox", "Play a provider on a loopback port."),
    "bench": ("upright.cli.bench.command:bench", "Measure, and try to break it."),
}


class Commands(LazyGroup):
    """The commands of ``upright``."""

    table = COMMANDS


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="upright")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration (default: UPRIGHT_CONFIG, or upright.toml in UPRIGHT_HOME).",
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.pass_context
def upright(ctx: click.Context, config: Path | None, debug: bool) -> None:
    """Upright moves your open work along when the world changes."""
    del debug  # read by main, which sees errors after the context is gone
    ctx.obj = config


def main(args: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code."""
    sys.exit(run(sys.argv[1:] if args is None else args))


def run(args: Sequence[str]) -> int:
    """Run a command.

    Returns 0 ok, 1 failed, 2 usage, 3 not found, 4 refused, 5 hub unreachable, 6 waited and it
    ended badly, 75 try again. An error is one sentence on standard error.
    """
    try:
        code = upright.main(args=list(args), prog_name="upright", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Aborted.", err=True)
        return 1
    except BrokenPipeError:
        return 1
    except Exception as error:
        if "--debug" in args:
            raise
        click.echo(f"upright: {sentence_of(error)}", err=True)
        return exit_code_of(error)
    return code if isinstance(code, int) else 0
