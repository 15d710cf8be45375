"""`execd consent`: the owner's word on commands that wait for it."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from upright_execd.ownerline import ask
from upright_execd.paths import Paths
from upright_execd.verbs.output import as_json, paths_of, print_json

KEYS: Final = {"a": "allow", "d": "deny", "s": "skip"}


@click.group("consent", invoke_without_command=True)
@click.pass_context
def verb(ctx: click.Context) -> None:
    """Answer what waits for your word: one key each, on a terminal."""
    if ctx.invoked_subcommand is not None:
        return
    paths = paths_of(ctx)
    questions = _questions(paths)
    if not sys.stdin.isatty():
        _print(questions)
        return
    for question in questions:
        _print([question])
        click.echo("  [a]llow  [d]eny  [s]kip ", nl=False)
        said = KEYS.get(click.getchar().lower(), "skip")
        click.echo(said)
        if said != "skip":
            _answer(paths, question["command_id"], said, digest=question["digest"])
    if not questions:
        click.echo("Nothing waits for your word.")


@verb.command("ls")
@as_json
@click.pass_context
def ls(ctx: click.Context, *, is_json: bool) -> None:
    """Show what waits."""
    questions = _questions(paths_of(ctx))
    if is_json:
        print_json({"questions": questions})
    else:
        _print(questions)


@verb.command("allow")
@click.argument("command_id")
@click.pass_context
def allow(ctx: click.Context, command_id: str) -> None:
    """Let this one command run; any unique beginning of its id will do."""
    _settle(paths_of(ctx), command_id, "allow")


@verb.command("deny")
@click.argument("command_id")
@click.pass_context
def deny(ctx: click.Context, command_id: str) -> None:
    """Keep this one command from running."""
    _settle(paths_of(ctx), command_id, "deny")


def _questions(paths: Paths) -> list[dict[str, Any]]:
    questions: list[dict[str, Any]] = ask(paths, {"op": "consent"})["questions"]
    return questions


def _settle(paths: Paths, name: str, said: str) -> None:
    done = _answer(paths, name, said)
    click.echo(f"{done['command_id']}: {done['answer']}")


def _answer(paths: Paths, name: str, said: str, *, digest: str | None = None) -> dict[str, Any]:
    return ask(paths, {"op": "answer", "command_id": name, "answer": said, "digest": digest})


def _print(questions: list[dict[str, Any]]) -> None:
    for question in questions:
        click.echo(f"{question['command_id']}  ({question['reason']})")
        click.echo(f"  run     {question['argv']}")
        click.echo(f"  in      {question['cwd']}")
        for setting in question["env"]:
            click.echo(f"  with    {setting}")
        if question["stdin_bytes"]:
            click.echo(f"  input   {question['stdin_bytes']} bytes")
        click.echo(f"  digest  {question['digest']}")
