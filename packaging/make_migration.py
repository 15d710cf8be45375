"""Write the first migration anew from the tables: ``python packaging/make_migration.py``.

While nothing is released there is one version file only, and it follows the tables. After the
first release this script goes, and each change of the tables is a migration of its own.
"""  # noqa: INP001  # a script, no package

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import sqlalchemy as sa
from alembic.autogenerate import produce_migrations, render_python_code
from alembic.migration import MigrationContext
from alembic.operations.ops import OpContainer

from upright.store import schema

TEXT = '''"""The tables, as first released."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite counts INTEGER keys only
TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")  # sorted by bytes


def upgrade() -> None:
{upgrade}


def downgrade() -> None:
{downgrade}
'''


TYPES = {
    "SERIAL": "sa.BigInteger().with_variant(sa.Integer(), 'sqlite')",
    "TEXT": "sa.String().with_variant(sa.String(collation='C'), 'postgresql')",
}


def rendered(operations: OpContainer | None) -> str:
    """Render the body of one function."""
    if operations is None:
        raise LookupError("Alembic made no migration")
    text = render_python_code(operations)
    text = re.sub(r"^ *# ###.*\n?", "", text, flags=re.MULTILINE)
    for name, written in TYPES.items():
        text = text.replace(written, name)
    # SQLite's 0 for false is no boolean on PostgreSQL; the only defaults there are stand in truths
    return text.replace("sa.text('0')", "sa.false()")


def generated() -> str:
    """Compare the tables with an empty database, and render what is missing."""
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        script = produce_migrations(context, schema.METADATA)
    engine.dispose()
    text = TEXT.format(
        upgrade=rendered(script.upgrade_ops), downgrade=rendered(script.downgrade_ops)
    )
    return subprocess.run(  # noqa: S603  # our own formatter, by argv
        [Path(sys.executable).with_name("ruff"), "format", "--isolated", "--line-length=100", "-"],
        input=text,
        text=True,
        capture_output=True,
        check=True,
    ).stdout


def main() -> None:
    """Replace the version file; ``tests/contract/store/test_migrations.py`` says if it is right."""
    folder = Path(schema.__file__).parent / "migrations" / "versions"
    text = generated()
    for old in folder.glob("*.py"):
        old.unlink()
    (folder / "0001_first_tables.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
