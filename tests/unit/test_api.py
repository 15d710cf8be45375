from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

import orjson
import pluggy
import pytest
from pydantic import TypeAdapter

from upright import api

SECRET: Final = "hunter2-do-not-print"
VALUES: Final = [
    value
    for _, value in inspect.getmembers(api, inspect.isclass)
    if dataclasses.is_dataclass(value) and value.__module__ == api.__name__
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.__name__)
def test_every_value_of_the_door_is_frozen_and_has_slots(value: type) -> None:
    assert vars(value)["__dataclass_params__"].frozen
    assert "__dict__" not in dir(value)


@pytest.mark.clause("B1.1")
def test_a_trigger_needs_its_four_dimensions_and_a_dedupe_key() -> None:
    needed = {
        field.name
        for field in dataclasses.fields(api.Trigger)
        if field.default is dataclasses.MISSING
    }
    assert needed == {"kind", "channel", "actor", "content", "context", "dedupe"}


@pytest.mark.clause("B1.1")
def test_the_kinds_of_actors_channels_and_addresses_are_the_designs() -> None:
    assert " ".join(api.ActorKind) == "operator member contact stranger bot system self"
    assert " ".join(api.Channel) == (
        "github ci chat mail calendar timer webhook file database job device operator"
        " phone sms social"
    )
    assert " ".join(api.Address) == "direct mention none"


@pytest.mark.clause("B14.2")
def test_effects_have_five_classes() -> None:
    assert " ".join(api.EffectClass) == "read work reply reach shell"


@pytest.mark.clause("B1.3")
def test_an_actor_is_a_stranger_until_somebody_knows_better() -> None:
    assert api.Actor(id="1").kind is api.ActorKind.STRANGER


@pytest.mark.clause("B1.2")
def test_a_trigger_keeps_its_raw_bytes_and_cannot_be_changed() -> None:
    trigger = api.Trigger(
        kind="ci.failed",
        channel=api.Channel.CI,
        actor=api.Actor(id="1"),
        content=api.Content(),
        context=api.Context(thread="t"),
        dedupe=("d",),
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
        raw=b'{"\xff"}',
    )
    assert trigger.raw == b'{"\xff"}'
    for field in dataclasses.fields(trigger):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(trigger, field.name, None)


@pytest.mark.clause("B15.1")
def test_a_destination_gives_the_parts_of_its_address_and_names_a_missing_one() -> None:
    address = (("repository", "acme/app"), ("number", "7"))
    place = api.Destination(source="github", kind="comment", address=address)
    assert place.get("number") == "7"
    with pytest.raises(KeyError, match="path"):
        place.get("path")


# ------------------------------------------------------------------ secrets
@pytest.mark.clause("B14.5")
def test_a_secret_does_not_print() -> None:
    secret = api.Secret(SECRET)
    for shown in (str(secret), repr(secret), f"{secret}", f"{[secret]!r}", f"{secret!s:>20}"):
        assert SECRET not in shown
        assert "Secret(…)" in shown


@pytest.mark.clause("B14.5")
def test_a_secret_does_not_show_in_an_error_that_names_it() -> None:
    error = api.ConnectorError(api.Secret(SECRET))
    assert SECRET not in "".join(traceback.format_exception(error))


@dataclass(frozen=True)
class Held:
    """What holds a secret beside other things."""

    name: str
    secret: api.Secret


@pytest.mark.clause("B14.5")
@pytest.mark.parametrize(
    "written",
    [
        lambda held: str(asdict(held)),
        repr,
        lambda held: json.dumps(asdict(held), default=str),
        lambda held: repr(copy.deepcopy(held)),
        lambda held: json.dumps(held.secret),
        lambda held: json.dumps(held.secret, default=vars),
        lambda held: orjson.dumps(held).decode(),
        lambda held: orjson.dumps(held, default=asdict).decode(),
        lambda held: repr(pickle.dumps(held)),
        lambda held: repr(TypeAdapter(object).dump_json(held)),
        lambda held: f"{held.name} {held.secret!r:>20}",
        lambda held: logging.Formatter().format(_logged(held)),
        lambda held: "".join(traceback.format_exception(ValueError(held, held.secret))),
    ],
    ids=[
        "asdict",
        "repr",
        "json default",
        "deepcopy",
        "json",
        "json vars",
        "orjson",
        "orjson asdict",
        "pickle",
        "pydantic",
        "format",
        "log",
        "traceback",
    ],
)
def test_nothing_that_writes_values_down_finds_a_secret(written: Callable[[Held], str]) -> None:
    held = Held("token", api.Secret(SECRET))
    try:
        said = written(held)
    except (TypeError, ValueError) as refused:
        said = "".join(traceback.format_exception(refused))
    assert SECRET not in said


def _logged(held: Held) -> logging.LogRecord:
    return logging.LogRecord("x", logging.INFO, "x", 1, "%s %r", (held, held.secret), None)


def test_two_secrets_are_the_same_when_their_values_are() -> None:
    one, same, other = api.Secret("a"), api.Secret("a"), api.Secret("b")
    assert (one == same, one == other, one == "a") == (True, False, False)
    assert len({one, same, other}) == 2
    assert copy.copy(one) is one


def test_a_secret_is_revealed_on_purpose_only() -> None:
    assert api.Secret(SECRET).reveal() == SECRET
    assert api.SecretRef("keyring:github").reference == "keyring:github"


# ------------------------------------------------------------------ errors
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (api.ConnectorNotReadyError("away"), "connector.not_ready"),
        (api.ConnectorAuthFailedError("401"), "connector.auth_failed"),
        (api.TriggerRejectedError("bad"), "trigger.rejected"),
        (api.RetryableSendError("503"), "send.retryable"),
        (api.PermanentSendError("404"), "send.permanent"),
        (api.UnknownSendError("cut"), "send.unknown"),
    ],
    ids=lambda value: None,
)
def test_each_error_of_a_connector_has_a_code_and_one_root(
    error: api.ConnectorError, code: str
) -> None:
    assert getattr(error, "code", None) == code
    assert isinstance(error, api.ConnectorError)


@pytest.mark.clause("B2.4")
def test_a_rejection_carries_its_reason_its_status_and_a_code_of_its_own() -> None:
    plain = api.TriggerRejectedError("The body is no JSON")
    assert (plain.reason, plain.status, plain.code) == (
        "The body is no JSON",
        400,
        "trigger.rejected",
    )
    own = api.TriggerRejectedError("Bad signature", status=401, code="trigger.bad_signature")
    assert (str(own), own.status, own.code) == ("Bad signature", 401, "trigger.bad_signature")
    assert api.TriggerRejectedError.code == "trigger.rejected"


def test_errors_that_pass_say_when_it_is_worth_trying_again() -> None:
    assert api.ConnectorNotReadyError("away", retry_after_s=3.0).retry_after_s == 3.0
    assert api.ConnectorNotReadyError("away").retry_after_s is None
    assert api.RetryableSendError("429", after_s=60.0).after_s == 60.0
    assert api.RetryableSendError("503").after_s is None


# ------------------------------------------------------------------ the hooks
def manager() -> pluggy.PluginManager:
    plugins = pluggy.PluginManager("upright")
    plugins.add_hookspecs(api.Hooks)
    return plugins


def test_a_plugin_offers_its_connectors_through_the_hook() -> None:
    offered = api.ConnectorType(
        kind="none", summary="Nothing", settings=object, make=lambda name, settings: settings
    )

    class Plugin:
        @api.hookimpl
        def upright_connectors(self) -> list[api.ConnectorType]:
            return [offered]

        @api.hookimpl
        def upright_commands(self, group: list[str]) -> None:
            group.append("none")

    plugins, group = manager(), list[str]()
    plugins.register(Plugin())
    plugins.check_pending()
    plugins.hook.upright_commands(group=group)
    assert plugins.hook.upright_connectors() == [[offered]]
    assert group == ["none"]


def test_a_misspelt_hook_is_found() -> None:
    class Plugin:
        @api.hookimpl
        def upright_conectors(self) -> None:
            """Misspelt on purpose."""

    plugins = manager()
    plugins.register(Plugin())
    with pytest.raises(pluggy.PluginValidationError, match="upright_conectors"):
        plugins.check_pending()


def test_the_door_has_a_version_and_a_group_of_entry_points() -> None:
    assert (api.API_VERSION, api.ENTRY_POINT_GROUP) == (1, "upright")
