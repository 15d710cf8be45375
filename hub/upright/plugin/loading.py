"""Loading: plugins come in one by one, each guarded; a broken one is a reason, not a crash.

pluggy's own loader stops at the first broken plugin, one raising implementation aborts the whole
call, an async implementation comes back un-awaited, and a misspelt hook is never noticed: so each
entry point is loaded, checked and asked alone.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import pluggy

from upright.api import ConnectorType, Hooks
from upright.plugin.manifest import Listed, PluginError
from upright.settings.errors import nearest

log = logging.getLogger(__name__)

HOOK_PREFIX: Final = "upright_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The kinds that can be used, and why others can't (kind to sentence)."""

    types: Mapping[str, ConnectorType]
    failures: Mapping[str, str]


class Door:
    """The plugin manager of one hub."""

    def __init__(self) -> None:
        self._plugins = pluggy.PluginManager("upright")
        self._plugins.add_hookspecs(Hooks)

    def connectors(self, plugins: Iterable[Listed], kinds: Collection[str]) -> Loaded:
        """Load the plugins that offer any of *kinds*, and no others."""
        types: dict[str, ConnectorType] = {}
        failures: dict[str, str] = {}
        known = tuple(plugins)
        for plugin in known:
            offered = plugin.manifest.kinds if plugin.manifest else ()
            wanted = [kind for kind in offered if kind in kinds]
            if not wanted:
                continue
            try:
                found = self._ask_for_connectors(plugin)
            except PluginError as error:
                failures |= dict.fromkeys(wanted, str(error))
            else:
                types |= {kind: found[kind] for kind in wanted if kind in found}
        for kind in kinds:
            if kind not in types:
                failures.setdefault(kind, _nobody_offers(kind, known))
        return Loaded(types=types, failures=failures)

    def add_commands(self, plugin: Listed, group: object) -> None:
        """Let one plugin add its commands to a click group.

        Raises:
            PluginError: it can't be loaded, or its hook broke.
        """
        self._load(plugin)
        self._call(plugin, "upright_commands", group=group)

    def _ask_for_connectors(self, plugin: Listed) -> dict[str, ConnectorType]:
        self._load(plugin)
        found: dict[str, ConnectorType] = {}
        for result in self._call(plugin, "upright_connectors"):
            if not isinstance(result, Iterable):
                problem = f"{plugin.entry.name} returned {type(result).__name__}, not connectors"
                raise PluginError(problem)
            for offered in result:
                if not isinstance(offered, ConnectorType):
                    problem = f"{plugin.entry.name} offered {offered!r}, which is no ConnectorType"
                    raise PluginError(problem)
                found[offered.kind] = offered
        return found

    def _load(self, plugin: Listed) -> None:
        name = plugin.entry.name
        if self._plugins.has_plugin(name):
            return
        try:
            module = plugin.entry.load()
        except Exception as error:
            log.exception("plugin.import_failed", extra={"plugin": name})
            problem = f"{name} can't be imported: {type(error).__name__}: {error}"
            raise PluginError(problem) from error
        misspelt = [hook for hook in _hooks_of(module) if not hasattr(Hooks, hook)]
        if misspelt:
            problem = f"{name} implements {misspelt[0]}, and there is no such hook"
            raise PluginError(problem)
        try:
            self._plugins.register(module, name)
            self._plugins.check_pending()
        except (pluggy.PluginValidationError, ValueError) as error:
            if self._plugins.has_plugin(name):
                self._plugins.unregister(name=name)
            problem = f"{name} doesn't fit the door: {error}"
            raise PluginError(problem) from error

    def _call(self, plugin: Listed, hook: str, **given: object) -> list[object]:
        name = plugin.entry.name
        others = [other for key, other in self._plugins.list_name_plugin() if key != name]
        caller = self._plugins.subset_hook_caller(hook, remove_plugins=others)
        try:
            results: list[object] = caller(**given)
        except Exception as error:
            log.exception("plugin.hook_broke", extra={"plugin": name, "hook": hook})
            problem = f"{name} broke in {hook}: {type(error).__name__}: {error}"
            raise PluginError(problem) from error
        for result in results:
            if inspect.iscoroutine(result):
                result.close()
                problem = f"{name} made {hook} async; hooks are synchronous"
                raise PluginError(problem)
        return results


def _hooks_of(module: object) -> list[str]:
    return [
        name
        for name in vars(module)
        if name.startswith(HOOK_PREFIX) and hasattr(getattr(module, name), "upright_impl")
    ]


def _nobody_offers(kind: str, plugins: Collection[Listed]) -> str:
    broken = [plugin.problem for plugin in plugins if plugin.problem]
    offered = sorted({k for p in plugins if p.manifest for k in p.manifest.kinds})
    said = f"no installed plugin offers the connector {kind!r}"
    if offered:
        said += f", {nearest(kind, offered)}"
    return f"{said}; {broken[0]}" if broken else said
