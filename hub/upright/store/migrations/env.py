"""Alembic's entry: runs the migrations in the transaction of the connection it was given."""

from __future__ import annotations

from alembic import context

from upright.store import tables

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=tables.Meta.metadata,
    compare_type=True,
    compare_server_default=True,
    render_as_batch=connection.dialect.name == "sqlite",  # SQLite can't alter a column in place
)
context.run_migrations()
