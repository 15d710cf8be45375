"""Settings: precedence, origins, and the one sentence when something is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from upright.api import ActorKind, Destination, SecretRef
from upright.core.gate import Mode, Verdict
from upright.core.routing import PassThrough
from upright.settings.errors import SettingsError
from upright.settings.load import explain, home_of, load
from upright.settings.rules import read_rules
from upright.settings.shape import Limits, Settings

WHOLE = """
bots = ["gh:dependabot[bot]"]

[hub]
port = 9000

[model]
base_url = "http://127.0.0.1:4000/v1"
name = "small"
api_key = "env:KEY"

[model.worker]
name = "large"

[sources.gh]
connector = "github"
mode = "explicit_only"
secret = "env:HOOK"
repositories = ["acme/app"]

[[rules]]
name = "red main"
verdict = "explicit"
kinds = ["ci.failed"]
facts = { branch = "main" }

[people.ada]
kind = "operator"
ids = ["gh:1815"]

[limits]
lease_s = 2
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "upright.toml"
    path.write_text(text, encoding="utf-8")
    return path


def loaded(tmp_path: Path, text: str, **env: str) -> Settings:
    return load({"UPRIGHT_HOME": str(tmp_path), **env}, file=written(tmp_path, text))


def test_a_whole_file_becomes_typed_values(tmp_path: Path) -> None:
    settings = loaded(tmp_path, WHOLE)
    assert settings.hub.port == 9000
    assert settings.model.api_key == SecretRef("env:KEY")
    assert settings.model.names() == {"worker": "large"}
    assert settings.sources["gh"].mode is Mode.EXPLICIT_ONLY
    assert settings.sources["gh"].keys == {"secret": "env:HOOK", "repositories": ["acme/app"]}
    assert settings.rules[0].verdict is Verdict.EXPLICIT
    assert settings.rules[0].facts == (("branch", "main"),)
    assert settings.limits.lease_s == 2.0
    assert settings.bots == {"gh:dependabot[bot]"}
    person = settings.identities().person("gh", "1815")
    assert person is not None
    assert person.kind is ActorKind.OPERATOR


def test_without_a_file_everything_is_a_default(tmp_path: Path) -> None:
    settings = load({"UPRIGHT_HOME": str(tmp_path)})
    assert settings.limits == Limits()
    assert not settings.model.configured
    assert {origin for _, _, origin in explain(settings)} == {"default"}


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "[hub]\nport = 1\nhost = '127.0.0.2'\nname = 'file'\n")
    env = {"UPRIGHT_HOME": str(tmp_path), "UPRIGHT_HUB_PORT": "2", "UPRIGHT_HUB_HOST": "127.0.0.3"}
    settings = load(env, file=path, flags={"hub.port": 3, "hub.host": None})
    assert (settings.hub.port, settings.hub.host, settings.hub.name) == (3, "127.0.0.3", "file")
    origins = {key: origin for key, _, origin in explain(settings)}
    assert origins["hub.port"] == "flag"
    assert origins["hub.host"] == "environment UPRIGHT_HUB_HOST"
    assert origins["hub.name"] == str(path)
    assert origins["hub.public_url"] == "default"


def test_relative_paths_are_below_the_home(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "[hub]\nstate_dir = 'state'\n")
    assert settings.database_path == tmp_path / "state" / "upright.db"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[hub]\nprot = 1", 'hub.prot in {file}: there is no such key, did you mean "port"?'),
        ("[hubb]\nport = 1", 'hubb in {file}: there is no such key, did you mean "hub"?'),
        ("[hub]\nport = '1'", "hub.port in {file}: must be a whole number, not '1'"),
        ("[hub]\nport = true", "hub.port in {file}: must be a whole number, not True"),
        ("[hub]\nport = 70000", "hub in {file}: port must be between 0 and 65535"),
        ("hub = 1", "hub in {file}: must be a table, not 1"),
        ("[sources]\ngh = 1", "sources.gh in {file}: must be a table"),
        ("[sources.gh]\nmode = 'off'", "sources.gh.connector in {file}: this key is missing"),
        ("[limits]\nlease_s = 0", "limits in {file}: lease_s must be above 0"),
        (
            "[sources.gh]\nconnector = 'github'\nmode = 'explicit'",
            "sources.gh.mode in {file}: 'explicit' is not valid, did you mean \"explicit_only\"?",
        ),
        (
            "[[rules]]\nname = 'x'\nverdict = 'ignore'\nkinds = 'a.b'",
            "rules.0.kinds in {file}: must be a list, not 'a.b'",
        ),
        (
            "[people.ada]\nkind = 'bot'\nids = []",
            "people.ada in {file}: kind must be operator, member or contact",
        ),
        (
            "[people.ada]\nkind = 'member'\nids = ['ada']",
            'people.ada in {file}: ids are "source:id" or "*:id", not \'ada\'',
        ),
        (
            "[people.ada]\nkind = 'operator'\nids = []\nnotify = 'C0123'",
            'people.ada in {file}: notify is "source:room", as "slack:C0123456789", not \'C0123\'',
        ),
        (
            "[people.ada]\nkind = 'member'\nids = []\nnotify = 'slack:C1'",
            "people.ada in {file}: notify is for operators: nobody else answers what waits",
        ),
        (
            "sources.s.connector = 'x'\n[people.a]\nkind = 'operator'\nids = []\nnotify = 't:C'",
            "people.a.notify in {file}: there is no source 't', valid here: s",
        ),
        (
            "[model]\nbase_url = 'http://127.0.0.1:1/v1'",
            "model in {file}: name is missing, or UPRIGHT_MODEL_NAME: which model is asked?",
        ),
    ],
)
def test_what_is_wrong_is_said_with_key_and_file_and_nearest_name(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, text)
    assert str(caught.value) == said.format(file=tmp_path / "upright.toml")


def test_a_secret_written_where_a_reference_belongs_is_never_repeated(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, "[model]\nbase_url = 'https://x.test'\nname = 'm'\napi_key = 'sk-hush'")
    assert "sk-hush" not in str(caught.value)
    assert "env:NAME" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("url = 'postgresql://me:hush@db/upright'", "must not hold a password"),
        ("url = 'mysql://me@db/hush'", "must be an address such as postgresql://"),
        ("url = 'postgresql://hush'", "must be an address such as postgresql://"),
        ("password = 'env:DB'", "password is for a database with a url"),
    ],
)
def test_a_database_address_that_cannot_be_used_is_not_repeated(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        loaded(tmp_path, f"[database]\n{text}")
    assert "hush" not in str(caught.value)


def test_a_database_on_a_server_has_its_password_by_reference(tmp_path: Path) -> None:
    text = "[database]\nurl = 'postgresql://me@db:5433/upright'\npassword = 'env:DB'"
    section = loaded(tmp_path, text).database
    assert (section.url, section.password) == (
        "postgresql://me@db:5433/upright",
        SecretRef("env:DB"),
    )


def test_text_that_is_no_toml_is_called_that(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="this is no TOML: Expected"):
        loaded(tmp_path, "[hub")


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="upright init"):
        load({"UPRIGHT_CONFIG": str(tmp_path / "no.toml")})


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (
            {"UPRIGHT_HUB_PROT": "1"},
            'UPRIGHT_HUB_PROT in the environment: unknown, did you mean "UPRIGHT_HUB_PORT"?',
        ),
        (
            {"UPRIGHT_HUB_PORT": "many"},
            "hub.port in environment UPRIGHT_HUB_PORT: must be a whole number, not 'many'",
        ),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, env: Mapping[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, "", **env)
    assert str(caught.value) == said


def test_variables_that_are_no_settings_are_left_alone(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "", UPRIGHT_REQUIRE="all", UPRIGHT_HUB="http://127.0.0.1:1")
    assert settings.hub.port == 8765


def test_an_openai_key_alone_means_their_service(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "", OPENAI_API_KEY="sk-x")
    assert settings.model.base_url == "https://api.openai.com/v1"
    assert settings.model.api_key == SecretRef("env:OPENAI_API_KEY")
    assert settings.model.name
    origins = {key: origin for key, _, origin in explain(settings)}
    assert origins["model.base_url"] == "environment OPENAI_API_KEY"


def test_an_openai_key_changes_nothing_that_the_file_says(tmp_path: Path) -> None:
    text = "[model]\nbase_url = 'http://127.0.0.1:1/v1'\nname = 'mine'\napi_key = 'file:k'"
    model = loaded(tmp_path, text, OPENAI_API_KEY="sk-x").model
    assert (model.base_url, model.name, model.api_key) == (
        "http://127.0.0.1:1/v1",
        "mine",
        SecretRef("file:k"),
    )


def test_the_model_address_of_the_environment_wins(tmp_path: Path) -> None:
    env = {
        "UPRIGHT_MODEL_URL": "http://127.0.0.1:2/v1",
        "UPRIGHT_MODEL_WORKER_NAME": "w",
        "UPRIGHT_MODEL_NAME": "n",
        "OPENAI_BASE_URL": "http://127.0.0.1:3/v1",
    }
    model = loaded(tmp_path, "[model]\nbase_url = 'http://127.0.0.1:1/v1'", **env).model
    assert model.base_url == "http://127.0.0.1:2/v1"
    assert (model.name, model.worker.name) == ("n", "w")


def test_doctor_never_sees_the_values_of_a_source(tmp_path: Path) -> None:
    rows = list(explain(loaded(tmp_path, WHOLE)))
    file = str(tmp_path / "upright.toml")
    assert ("sources.gh.secret", "(set)", file) in rows
    assert ("sources.gh.mode", "explicit_only", file) in rows
    assert ("model.api_key", "env:KEY", file) in rows


def test_the_modes_of_the_sources_are_told_by_name(tmp_path: Path) -> None:
    assert loaded(tmp_path, WHOLE).modes() == (("gh", Mode.EXPLICIT_ONLY),)


@pytest.mark.clause("B6.9")
@pytest.mark.parametrize("value", list(PassThrough))
def test_pass_through_is_all_people_or_none(tmp_path: Path, value: PassThrough) -> None:
    assert loaded(tmp_path, "").routing.pass_through is PassThrough.ALL
    said = loaded(tmp_path, f'[routing]\npass_through = "{value}"\n')
    assert said.routing.pass_through is value


def test_the_home_is_what_the_variable_names(tmp_path: Path) -> None:
    assert home_of({"UPRIGHT_HOME": str(tmp_path)}) == tmp_path
    assert home_of({}).name == "upright"


def test_rules_that_are_nested_without_end_are_refused_in_one_sentence() -> None:
    with pytest.raises(SettingsError, match="nested too deeply"):
        read_rules("x = " + "[" * 5_000, origin="f")


@pytest.mark.clause("B14.4")
def test_who_is_to_be_told_is_told_in_a_room_of_a_source(tmp_path: Path) -> None:
    told = "[people.ada]\nkind = 'operator'\nids = []\nnotify = 'chat:!room:example.org'\n"
    source = "[sources.chat]\nconnector = 'matrix'"
    settings = loaded(tmp_path, told + source)
    address = (("room", "!room:example.org"),)
    place = Destination(source="chat", kind="room", address=address)
    assert settings.terms().notify == {"ada": place}
    shown = {key: value for key, value, _ in explain(settings)}
    assert shown["people.ada"] == "operator: ; told at chat:!room:example.org"
