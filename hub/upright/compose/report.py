"""Report: how the hub is, for people, for readiness probes and for the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from upright.compose.growth import Growth
from upright.core.connector import ConnectorState
from upright.devices.links import Links
from upright.engine.supervisor import Supervisor
from upright.plugin.connectors import Connectors
from upright.settings.shape import Settings
from upright_wire.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Reads the states of the running parts; the rows have the rest."""

    settings: Settings
    hub_id: str
    links: Links
    connectors: Connectors
    supervisor: Supervisor
    began_ms: int
    growth: Growth

    async def status(self) -> Mapping[str, object]:
        """Say which version runs since when, and how its parts are."""
        model = self.settings.model
        return {
            "version": __version__,
            "hub": self.hub_id,
            "name": self.settings.hub.name,
            "began_ms": self.began_ms,
            "model": model.base_url if model.configured else None,
            "devices_online": sorted(self.links.online()),
            "sources": {one.source: one.state.value for one in self.connectors.standings()},
            "services": {one.name: one.running for one in self.supervisor.health()},
        }

    def unready(self) -> Mapping[str, str]:
        """Name what isn't ready, with a sentence each."""
        services = {
            one.name: one.reason or "it is not running"
            for one in self.supervisor.health()
            if not one.running
        }
        loading = {
            one.source: "the source is being loaded"
            for one in self.connectors.standings()
            if one.state is ConnectorState.LOADING
        }
        return {**services, **loading, **self.growth.unready()}
