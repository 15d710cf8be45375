"""The command line: the list of verbs; a verb's module is imported only when it is used."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from upright_execd.errors import ExecdError, RemoteError
from upright_wire.version import __version__

VERBS: Final[Mapping[str, str]] = {
    "pair": "Pair this machine with a hub.",
    "run": "Run the daemon until it is stopped.",
    "status": "Show how the running daemon is.",
    "try": "Run a command here by the rules that hold for the hub's.",
    "consent": "Answer what waits for your word.",
    "rules": "Let commands run unasked.",
    "workspace": "List the folders in which commands may run.",
    "secret": "Keep secrets that commands may ask for by name.",
    "log": "Show what was asked, decided and done.",
    "doctor": "Check this machine, and say how to fix it.",
    "revoke": "Wipe the key and the pairing on this side.",
}

_MODULES: Final = {"try": "attempt"}  # a module can't have a keyword's name


class Verbs(click.Group):
    """A group whose members lie in ``upright_execd.verbs``; its help imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in their order."""
        return [*VERBS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb."""
        if cmd_name not in VERBS:
            return super().get_command(ctx, cmd_name)
        name = _MODULES.get(cmd_name, cmd_name)
        verb: click.Command = import_module(f"upright_execd.verbs.{name}").verb
        return verb

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs as the table above has them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, VERBS[name]) for name in self.list_commands(ctx)])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="execd")
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep settings and state in this folder (default: UPRIGHT_EXECD_HOME, or the platform's).",
)
@click.pass_context
def execd(ctx: click.Context, home: Path | None) -> None:
    """Run an Upright hub's commands on this machine, under your rules."""
    ctx.obj = home


def main(args: Sequence[str] | None = None) -> None:
    """Run a verb and exit with its code: those of ``upright``, see ``run``."""
    sys.exit(run(args))


def run(args: Sequence[str] | None = None) -> int:
    """Run a verb.

    Returns 0 ok, 1 failed, 2 usage, 3 not found, 4 refused, 5 unreachable or 75 try again.
    """
    try:
        code = execd.main(args=args, prog_name="execd", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Aborted.", err=True)
        return 1
    except RemoteError as error:
        click.echo(f"execd: {error}", err=True)
        return error.status
    except ExecdError as error:
        click.echo(f"execd: {error}", err=True)
        return error.exit_code
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"execd: {where}{error.strerror or error}", err=True)
        return 1
    return code if isinstance(code, int) else 0
