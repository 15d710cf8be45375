"""Hub: every part made and joined; nothing runs yet."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from upright.agent.turn import AgentParts, TurnRunner
from upright.compose.agenda import HubAgenda
from upright.compose.agents import HubAgents, agents_of
from upright.compose.backlog import Backlog
from upright.compose.commands import CommandParts, HubCommands
from upright.compose.commands_devices import HubMachines
from upright.compose.commands_oversight import HubOversight
from upright.compose.desk import Desk
from upright.compose.doors import doors
from upright.compose.given import agent_limits, dialled, private_key, roll
from upright.compose.growth import Growth, growth
from upright.compose.intake import Intake, IntakeParts
from upright.compose.keeper import Keeper
from upright.compose.mind import Keys, open_mind
from upright.compose.notify import check_notify
from upright.compose.purse import Purse
from upright.compose.report import Report
from upright.compose.roots import Roots
from upright.compose.talk import talk_of
from upright.core.backoff import Backoff
from upright.core.fold import Quiet
from upright.core.ids import SessionId
from upright.devices.dispatch import Dispatcher, Wiring
from upright.devices.door import Door, DoorParts
from upright.devices.identity import HubIdentity
from upright.devices.link import LinkTimes
from upright.devices.links import Links
from upright.devices.pairing import ChangedError, PairingParts, Pairings, UnknownCodeError
from upright.devices.roster import StoredPairings, StoredRoster
from upright.devices.transport import GoneError
from upright.engine.clock import SortableIds, SystemClock, now_ms
from upright.engine.embedded import EmbeddedEngine, EngineLimits
from upright.engine.ports import ChatModel
from upright.engine.rate import Rate
from upright.engine.signals import Signals
from upright.engine.supervisor import Supervisor
from upright.engine.timers import Timers
from upright.engine.units import Units
from upright.engine.watchman import Watchman
from upright.llm.meter import Meter
from upright.outward.notices import Notices
from upright.outward.sender import Sender, SenderLimits, SenderParts
from upright.plugin.breaker import BreakerLimits
from upright.plugin.connectors import Connectors, declared, open_connectors, vouches
from upright.plugin.context import World
from upright.plugin.life import LifeParts, Standing
from upright.plugin.manifest import installed, listed
from upright.plugin.reconcile import ReconcileParts
from upright.settings.errors import SettingsError
from upright.settings.home import Home
from upright.settings.secrets import Secrets
from upright.settings.shape import Settings
from upright.store import sources
from upright.store.errors import NotNowError
from upright.store.policy import Base
from upright.store.storage import Storage
from upright.web.bell import Bell
from upright.web.parts import Parts, WebLimits

FAILURES_PER_MINUTE: Final = 20
PAIRINGS_PER_MINUTE: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """The parts that run."""

    settings: Settings
    store: Storage
    units: Units
    engine: EmbeddedEngine
    signals: Signals
    model: Meter | None
    runner: TurnRunner | None  # None with the model: sessions wait, and nothing is lost
    timers: Timers
    intake: Intake
    watchman: Watchman
    dispatcher: Dispatcher
    sender: Sender
    notices: Notices
    connectors: Connectors
    reconciling: ReconcileParts
    links: Links
    supervisor: Supervisor
    growth: Growth
    agents: HubAgents
    web: Parts
    home: Home


class _Builder:
    """Makes the parts in the order of their needs."""

    def __init__(self, roots: Roots, hub_id: str, keys: Keys) -> None:
        self.roots, self.settings = roots, roots.settings
        self.home = Home(folder=self.settings.state_dir)
        self.clock = SystemClock()
        self.ids = SortableIds(self.clock)
        self.bell = Bell()
        self.units = Units(
            roots.store,
            self.clock,
            self.ids,
            committed=self.bell.ring,
            terms=self.settings.terms(),
        )
        self.growth = growth(self.settings, self.home, self.units)
        self.agents = agents_of(self.settings, self.home, self.units)
        self.signals = Signals()
        self.links = Links(self.clock)
        self.identity = HubIdentity(hub_id, private_key(self.home))
        limits = self.settings.limits
        self.engine = EmbeddedEngine(
            self.units,
            EngineLimits(
                turns=limits.concurrent_turns,
                lease_s=limits.lease_s,
                sweep_s=limits.sweep_s,
                drain_s=limits.drain_s / 2,
            ),
            roll,
            self.signals,
            held=lambda: self.growth.full,
        )
        self.watchman = Watchman(self.units, self.engine.hint, every_s=limits.oracle_s)
        self.timers = Timers(self.units, self.engine.hint, sweep_s=limits.sweep_s)
        wiring = Wiring(
            units=self.units,
            signals=self.signals,
            woken=self.woken,
            most_under_way=limits.device_commands,
        )
        self.dispatcher = Dispatcher(wiring, self.links, sweep_s=limits.sweep_s)
        self.mind = open_mind(self.settings, keys, self.units)
        self.model = self.mind.model if self.mind else None
        self.base = self._base()
        self.backlog = Backlog(self.units, self.clock, most=limits.backlog_triggers)
        parts = IntakeParts(
            units=self.units,
            engine=self.engine,
            base=self.base,
            growth=self.growth,
            backlog=self.backlog,
        )
        self.intake = Intake(parts)

    def _base(self) -> Base:
        """Return what the configuration alone says of routing."""
        limits = self.settings.limits
        return Base(
            modes=self.settings.modes(),
            people=self.settings.identities(),
            routes=self.settings.model.configured,
            passes=self.settings.routing.pass_through,
            spill_bytes=limits.spill_bytes if self.growth.spill is not None else 0,
            quiet=Quiet(
                quiet_ms=round(1000 * limits.fold_quiet_s), most_ms=round(1000 * limits.fold_max_s)
            ),
        )

    def woken(self, sessions: Collection[SessionId]) -> None:
        """Hint what an outcome may have changed: turns and deadlines."""
        self.engine.hint(sessions)
        if sessions:
            self.timers.hint()

    def reconciling(self) -> ReconcileParts:
        return ReconcileParts(
            clock=self.clock,
            since=lambda name: self.units.read(lambda c: sources.cursor(c, name, listed=True)),
            keep=self.intake.keep,
            every_s=self.settings.limits.reconcile_s,
        )

    async def gauges(self) -> Mapping[str, float]:
        """Return the samples for Prometheus."""
        return {**await self.growth.gauges(), **await self.backlog.gauges()}

    def connectors(self) -> Connectors:
        limits = self.settings.limits

        async def cursor(source: str) -> str | None:
            return await self.units.read(lambda c: sources.cursor(c, source))

        async def report(standing: Standing) -> None:
            await self.units.write(
                lambda u: sources.report(
                    u,
                    standing.source,
                    standing.kind,
                    state=standing.state.value,
                    reason=standing.reason,
                )
            )

        parts = LifeParts(
            world=World(clock=self.clock, emit=self.intake.emit, cursor=cursor),
            secrets=Secrets(self.roots.env, self.settings.home),
            report=report,
            roll=roll,
            backoff=Backoff(base_s=limits.connector_base_s, cap_s=limits.connector_cap_s),
            start_s=limits.connector_start_s,
            stop_s=limits.connector_stop_s,
            breaker=BreakerLimits(breaks=limits.connector_breaks, rest_s=limits.connector_rest_s),
        )
        file = str(self.settings.file)
        plugins = listed(installed())
        made = open_connectors(self.settings.sources, plugins, parts, file=file)
        check_notify(self.settings, declared(self.settings.sources, plugins, file=file))
        self.intake.completes_by(made.remarked)
        self.intake.answered_in(lambda source: vouches(made, source))
        return made

    def sender(self, connectors: Connectors) -> Sender:
        limits = self.settings.limits
        backoff = Backoff(
            base_s=limits.outbox_base_s, cap_s=limits.outbox_cap_s, max_tries=limits.outbox_tries
        )
        return Sender(
            SenderParts(
                units=self.units,
                send=connectors.send,
                woken=self.woken,
                roll=roll,
                limits=SenderLimits(sweep_s=limits.sweep_s, backoff=backoff),
            )
        )

    def notices(self, sender: Sender) -> Notices:
        every_s = self.settings.limits.sweep_s
        return Notices(self.units, self.settings.terms(), sender.hint, sweep_s=every_s)

    def runner(self, model: ChatModel, sender: Sender, connectors: Connectors) -> TurnRunner:
        return TurnRunner(
            AgentParts(
                units=self.units,
                model=model,
                devices=self.dispatcher,
                outward=sender,
                signals=self.signals,
                wake=self.engine.hint,
                timers=self.timers.hint,
                roll=roll,
                draining=lambda: self.engine.draining,
                talk=talk_of(connectors, self.units, self.intake),
                agenda=HubAgenda(connectors=connectors),
                limits=agent_limits(self.settings.limits, self.settings.budgets),
            )
        )

    def pairings(self) -> Pairings:
        return Pairings(
            PairingParts(
                identity=self.identity,
                store=StoredPairings(self.units),
                clock=self.clock,
                ids=self.ids,
                random_bytes=secrets.token_bytes,
                below=secrets.randbelow,
            )
        )

    def door(self, pairings: Pairings) -> Door:
        limits = self.settings.limits
        return Door(
            DoorParts(
                identity=self.identity,
                roster=StoredRoster(self.units),
                pairings=pairings,
                links=self.links,
                clock=self.clock,
                random_bytes=secrets.token_bytes,
                hosts=dialled(self.settings.hub, self.roots.port),
                serve=self.dispatcher.serve,
                failures=Rate(clock=self.clock, tries=FAILURES_PER_MINUTE, window_s=60.0),
                requests=Rate(clock=self.clock, tries=PAIRINGS_PER_MINUTE, window_s=60.0),
                times=LinkTimes(ping_s=limits.ping_s, dead_s=limits.dead_s),
                handshake_s=limits.handshake_s,
            )
        )

    def web(
        self,
        commands: HubCommands,
        door: Door,
        connectors: Connectors,
        report: Report,
        *,
        send: Callable[[], None],
    ) -> Parts:
        hub, limits = self.settings.hub, self.settings.limits
        oversight = HubOversight(
            units=self.units,
            watchman=self.watchman,
            woken=self.woken,
            send=send,
            more=self.gauges,
        )
        return Parts(
            oversight=oversight,
            machines=HubMachines(self.units, self.woken),
            doors=doors(self.settings, self.units, port=self.roots.port, secret=self.roots.oidc),
            purse=Purse(self.units, self.settings.budgets.caps(), self.mind, self.woken),
            agents=self.agents,
            clock=self.clock,
            token=self.home.make_token(),
            store=self.roots.store,
            accept=self.intake.accept,
            hooks=connectors,
            commands=commands,
            keeper=Keeper(
                growth=self.growth,
                where=self.roots.where,
                folder=self.home.folder,
                policy=self.intake.policy,
                woken=self.woken,
            ),
            desk=Desk(units=self.units, base=self.base, woken=self.woken),
            device=lambda socket: door.serve(socket, remote=socket.remote),
            gone=GoneError,
            online=self.links.online,
            status=report.status,
            unready=report.unready,
            gauges=oversight.gauges,
            bell=self.bell,
            talk=talk_of(connectors, self.units, self.intake),
            hosts=frozenset({urlsplit(hub.public_url).hostname or "localhost"}),
            statuses={
                NotNowError: HTTPStatus.CONFLICT,
                UnknownCodeError: HTTPStatus.NOT_FOUND,
                ChangedError: HTTPStatus.CONFLICT,
                SettingsError: HTTPStatus.UNPROCESSABLE_ENTITY,
            },
            limits=WebLimits(body_timeout_s=limits.hook_body_s, events_poll_s=limits.events_poll_s),
        )


def build(roots: Roots, hub_id: str, keys: Keys) -> Hub:
    """Make a hub of its parts. This loads plugins and reads the hub's key: it blocks."""
    make = _Builder(roots, hub_id, keys)
    connectors = make.connectors()
    sender = make.sender(connectors)
    pairings = make.pairings()
    commands = HubCommands(
        CommandParts(
            units=make.units,
            pairings=pairings,
            links=make.links,
            connectors=connectors,
            woken=make.woken,
            send=sender.hint,
            push=make.dispatcher.hint,
        )
    )
    supervisor = Supervisor(make.clock, roll)
    report = Report(
        settings=roots.settings,
        hub_id=hub_id,
        links=make.links,
        connectors=connectors,
        supervisor=supervisor,
        began_ms=now_ms(make.clock),
        growth=make.growth,
    )
    web = make.web(commands, make.door(pairings), connectors, report, send=sender.hint)
    return Hub(
        settings=roots.settings,
        store=roots.store,
        units=make.units,
        engine=make.engine,
        signals=make.signals,
        model=make.model,
        runner=make.runner(make.model, sender, connectors) if make.model else None,
        timers=make.timers,
        intake=make.intake,
        watchman=make.watchman,
        dispatcher=make.dispatcher,
        sender=sender,
        notices=make.notices(sender),
        connectors=connectors,
        reconciling=make.reconciling(),
        links=make.links,
        supervisor=supervisor,
        growth=make.growth,
        agents=make.agents,
        web=web,
        home=make.home,
    )
