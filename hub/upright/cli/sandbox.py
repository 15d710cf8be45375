"""``upright sandbox``: plugins play their providers; listed from manifests, loaded when used."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import click

from upright.plugin.loading import Door
from upright.plugin.manifest import Listed, installed, listed

PREFIX: Final = "sandbox "


class SandboxGroup(click.Group):
    """Its members are what the installed plugins' manifests list under ``[commands]``."""

    @cached_property
    def offered(self) -> dict[str, tuple[Listed, str]]:
        """Map each name to its plugin and its short help."""
        return {
            command.removeprefix(PREFIX): (plugin, short)
            for plugin in listed(installed())
            if plugin.manifest
            for command, short in plugin.manifest.commands.items()
            if command.startswith(PREFIX)
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, sorted."""
        return sorted({*self.offered, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the plugin that has this command."""
        if cmd_name not in self.commands and cmd_name in self.offered:
            Door().add_commands(self.offered[cmd_name][0], self)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the manifests say; no plugin is imported."""
        rows = [(name, self.offered[name][1]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=SandboxGroup)
def sandbox() -> None:
    """Play a provider on a loopback port: strict, stateful, with faults on demand."""
