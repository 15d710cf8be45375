"""`execd consent`: the owner's word on commands that wait for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

import click

from upright_execd import argvrules
from upright_execd.errors import NotFoundError, RefusedError, SettingsError
from upright_execd.ownerline import ask
from upright_execd.paths import Paths
from upright_execd.verbs.output import as_json, paths_of, print_json

KEYS: Final = {"a": "allow", "d": "deny", "s": "skip", "w": "always"}


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
        is_offered = isinstance(question["always"], dict)
        click.echo(f"  [a]llow  [d]eny  [s]kip{'  al[w]ays' if is_offered else ''} ", nl=False)
        said = KEYS.get(click.getchar().lower(), "skip")
        said = "skip" if said == "always" and not is_offered else said
        click.echo(said)
        if said != "skip":
            _check_mode(paths, _answer(paths, question, said))
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
@click.option("--always", "is_always", is_flag=True, help="And this very argv here from now on.")
@click.pass_context
def allow(ctx: click.Context, *, command_id: str, is_always: bool) -> None:
    """Let this one command run; any unique beginning of its id will do."""
    _settle(paths_of(ctx), command_id, "always" if is_always else "allow")


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
    found = [q for q in _questions(paths) if q["command_id"].startswith(name)]
    if len(found) != 1:
        sentence = f"{'Several questions wait' if found else 'No question waits'} for {name}."
        raise NotFoundError(sentence, advice="Run: execd consent ls")
    done = _answer(paths, found[0], said)
    _check_mode(paths, done)
    click.echo(f"{done['command_id']}: {said}")


def _answer(paths: Paths, question: Mapping[str, Any], said: str) -> dict[str, Any]:
    """Answer this very question: what runs has the digest that was shown."""
    if said == "always":
        rule = question["always"]
        if not isinstance(rule, dict):
            sentence = f"This can't be allowed for always: {rule}."
            raise SettingsError(sentence, advice="Allow it each time.")
        argvrules.add(paths.rules, argvrules.from_row(rule))
        ask(paths, {"op": "reload"})
    answer = {"op": "answer", "command_id": question["command_id"], "digest": question["digest"]}
    return ask(paths, {**answer, "answer": "deny" if said == "deny" else "allow"})


def _check_mode(paths: Paths, done: Mapping[str, Any]) -> None:
    """Say so where the mode was switched off since the question was asked."""
    if done["answer"] == "allow" and done["mode"] == "off":
        sentence = f"{done['command_id']} does not run, whatever you allow: the mode is off."
        advice = f'To allow things again: mode = "ask" in {paths.settings}'
        raise RefusedError(sentence, advice=advice)


def _print(questions: list[dict[str, Any]]) -> None:
    for question in questions:
        click.echo(f"{question['command_id']}  ({question['reason']})")
        click.echo(f"  run     {question['argv']}")
        click.echo(f"  program {question['program'] or 'none: it will not start'}")
        click.echo(f"  in      {question['cwd']}  (confinement: {question['confinement']})")
        for setting in question["env"]:
            click.echo(f"  with    {setting}")
        for secret in question["secrets"]:
            click.echo(f"  secret  {secret}")
        if question["stdin_bytes"]:
            click.echo(f"  input   {question['stdin_bytes']} bytes")
        click.echo(f"  digest  {question['digest']}")
