from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from upright.store import schema
from upright.store.database import Store
from upright.store.errors import RevisionError, StoreUnavailableError
from upright.store.writer import open_engine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def migrated(path: Path) -> Path:
    path.touch()
    schema.migrate(path)
    return path


def on(path: Path, look: Callable[[sa.Connection], object]) -> object:
    """Look at a file through an engine of its own."""
    engine = open_engine(str(path))
    with engine.begin() as connection:
        found = look(connection)
    engine.dispose()
    return found


def shape(connection: sa.Connection) -> dict[str, object]:
    """Describe every table: columns with types, keys, unique constraints, indexes."""
    inspector = sa.inspect(connection)
    return {
        table: [
            [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(table)],
            inspector.get_pk_constraint(table)["constrained_columns"],
            sorted(u["column_names"] for u in inspector.get_unique_constraints(table)),
            sorted((i["name"] or "", i["column_names"]) for i in inspector.get_indexes(table)),
        ]
        for table in inspector.get_table_names()
    }


def versions() -> list[ModuleType]:
    scripts = ScriptDirectory.from_config(schema.configuration())
    return [script.module for script in scripts.walk_revisions()][::-1]


def test_the_migrations_make_exactly_the_declared_tables(migrated: Path) -> None:
    def differences(connection: sa.Connection) -> object:
        return compare_metadata(MigrationContext.configure(connection), schema.METADATA)

    assert on(migrated, differences) == []


def test_a_fresh_database_and_a_migrated_one_have_the_same_shape(
    migrated: Path, tmp_path: Path
) -> None:
    schema.create(tmp_path / "fresh.db")
    assert on(tmp_path / "fresh.db", shape) == on(migrated, shape)


def test_every_migration_can_be_taken_back(migrated: Path) -> None:
    def down(connection: sa.Connection) -> object:
        config = schema.configuration()
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
        return sa.inspect(connection).get_table_names()

    assert on(migrated, down) == ["alembic_version"]


def test_postgresql_takes_the_same_migrations_with_counters_of_64_bits() -> None:
    written = io.StringIO()
    options = {"as_sql": True, "output_buffer": written}
    context = MigrationContext.configure(dialect_name="postgresql", opts=options)
    with Operations.context(context):
        for version in versions():
            version.upgrade()
    made = written.getvalue()
    assert made.count("CREATE TABLE") == len(schema.METADATA.tables)
    assert (
        made.count("BIGSERIAL") == 7
    )  # trigger, delivery, rules, home files, ledger, event, audit


def test_a_migration_of_a_current_file_changes_nothing(migrated: Path) -> None:
    before = on(migrated, shape)
    assert schema.migrate(migrated) == (schema.head(), schema.head())
    assert on(migrated, shape) == before


def test_a_migration_that_fails_half_way_leaves_the_file_as_it_was(path: Path) -> None:
    def in_the_way(connection: sa.Connection) -> object:
        return connection.execute(sa.text("CREATE TABLE work (x)")).rowcount

    on(path, in_the_way)
    with pytest.raises(sa.exc.OperationalError, match="already exists"):
        schema.migrate(path)
    assert list(on_tables(path)) == ["work"]
    assert schema.current(path) is None


def on_tables(path: Path) -> list[str]:
    found = on(path, lambda connection: sa.inspect(connection).get_table_names())
    assert isinstance(found, list)
    return found


def test_a_missing_file_is_refused_with_the_command_that_makes_it(path: Path) -> None:
    with pytest.raises(RevisionError, match="run: upright init") as refused:
        Store.open(path)
    assert (refused.value.found, path.exists()) == (None, False)


def test_an_older_file_is_refused_with_the_command_that_migrates_it(path: Path) -> None:
    path.touch()
    with pytest.raises(RevisionError, match="run: upright db migrate") as refused:
        schema.check(path)
    assert (refused.value.found, refused.value.wanted) == (None, schema.head())


@pytest.mark.parametrize("refusing", [Store.open, schema.check, schema.migrate])
def test_a_newer_file_is_refused_and_not_touched(
    migrated: Path, refusing: Callable[[Path], object]
) -> None:
    def rename(connection: sa.Connection) -> object:
        changed = sa.text("UPDATE alembic_version SET version_num = '9999'")
        return connection.execute(changed).rowcount

    on(migrated, rename)
    with pytest.raises(RevisionError, match="install the Upright that made it") as refused:
        refusing(migrated)
    assert (refused.value.command, schema.current(migrated)) == ("", "9999")


@pytest.mark.parametrize("refusing", [Store.open, schema.check, schema.migrate])
def test_a_file_that_is_no_database_is_refused_and_not_touched(
    path: Path, refusing: Callable[[Path], object]
) -> None:
    path.write_bytes(b"holiday photographs " * 400)
    with pytest.raises(StoreUnavailableError, match="not a database"):
        refusing(path)
    assert path.read_bytes().startswith(b"holiday")


def test_creating_over_a_database_is_refused(migrated: Path) -> None:
    with pytest.raises(FileExistsError):
        schema.create(migrated)


def test_a_creation_that_was_killed_can_be_done_again(path: Path) -> None:
    path.touch()
    schema.create(path)
    schema.check(path)


def test_the_version_file_is_what_the_maker_makes_from_the_tables() -> None:
    maker = Path(__file__).parents[3] / "packaging" / "make_migration.py"
    spec = importlib.util.spec_from_file_location("make_migration", maker)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    stored = Path(str(versions()[0].__file__)).read_text(encoding="utf-8")
    assert stored == made.generated(), "run: .venv/bin/python packaging/make_migration.py"
