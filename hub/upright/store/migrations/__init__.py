"""Migrations: Alembic's entry and its versions; read as files, never imported."""
