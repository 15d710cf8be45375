"""The tables, as first released."""

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
    op.create_table(
        "account",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("role", TEXT, nullable=False),
        sa.Column("runs", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("email", TEXT, nullable=False),
        sa.Column("made_by", TEXT, nullable=False),
        sa.Column("made_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("seen_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "account_subject",
        sa.Column("issuer", TEXT, nullable=False),
        sa.Column("subject", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("issuer", "subject"),
    )
    op.create_index(
        op.f("ix_account_subject_account_id"), "account_subject", ["account_id"], unique=False
    )
    op.create_table(
        "agent",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("template", TEXT, nullable=False),
        sa.Column("added_by", TEXT, nullable=False),
        sa.Column("added_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "api_token",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("scopes_json", TEXT, nullable=False),
        sa.Column("made_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("used_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("hash"),
    )
    op.create_index(op.f("ix_api_token_account_id"), "api_token", ["account_id"], unique=False)
    op.create_table(
        "audit",
        sa.Column("seq", SERIAL, autoincrement=True, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("who", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("via", TEXT, nullable=False),
        sa.Column("action", TEXT, nullable=False),
        sa.Column("object", TEXT, nullable=False),
        sa.Column("outcome", TEXT, nullable=False),
        sa.Column("origin", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("ix_audit_at", "audit", ["at_ms"], unique=False)
    op.create_index("ix_audit_who", "audit", ["who", "seq"], unique=False)
    op.create_table(
        "budget",
        sa.Column("scope", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("measure", TEXT, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("by", TEXT, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "name", "measure"),
    )
    op.create_table(
        "cursor",
        sa.Column("source", TEXT, nullable=False),
        sa.Column("value", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("source"),
    )
    op.create_table(
        "dedupe",
        sa.Column("source", TEXT, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("trigger_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("source", "key"),
    )
    op.create_table(
        "delivery",
        sa.Column("id", SERIAL, autoincrement=True, nullable=False),
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("trigger_id", TEXT, nullable=False),
        sa.Column("wake", sa.Boolean(), nullable=False),
        sa.Column("strategy", TEXT, nullable=False),
        sa.Column("folded", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("taken_n", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("session_id", "trigger_id"),
    )
    op.create_index(
        "ix_delivery_backlog",
        "delivery",
        ["session_id"],
        unique=False,
        sqlite_where=sa.text("taken_n IS NULL AND wake"),
        postgresql_where=sa.text("taken_n IS NULL AND wake"),
    )
    op.create_index(
        "ix_delivery_inbox",
        "delivery",
        ["session_id", "wake"],
        unique=False,
        sqlite_where=sa.text("taken_n IS NULL"),
        postgresql_where=sa.text("taken_n IS NULL"),
    )
    op.create_index(op.f("ix_delivery_trigger_id"), "delivery", ["trigger_id"], unique=False)
    op.create_table(
        "device",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("caps_json", TEXT, nullable=False),
        sa.Column("facts_json", TEXT, nullable=False),
        sa.Column("offered_json", TEXT, nullable=False),
        sa.Column("helper_json", TEXT, nullable=False),
        sa.Column("foreign_json", TEXT, nullable=False),
        sa.Column("remote", TEXT, nullable=False),
        sa.Column("suspected_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("approved_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("seen_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("public_key"),
    )
    op.create_table(
        "device_share",
        sa.Column("device_id", TEXT, nullable=False),
        sa.Column("person", TEXT, nullable=False),
        sa.Column("added_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("device_id", "person"),
    )
    op.create_table(
        "effect_edit",
        sa.Column("outbox_id", TEXT, nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("by", TEXT, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("was_text", TEXT, nullable=False),
        sa.Column("was_digest", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("outbox_id", "n"),
    )
    op.create_table(
        "entry",
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("turn_id", TEXT, nullable=False),
        sa.Column("message_json", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("ends_turn", sa.Boolean(), nullable=False),
        sa.Column("taint", sa.Integer(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "n"),
    )
    op.create_table(
        "event",
        sa.Column("seq", SERIAL, autoincrement=True, nullable=False),
        sa.Column("xact", sa.BigInteger(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("stop", TEXT, nullable=False),
        sa.Column("trigger_id", TEXT, nullable=True),
        sa.Column("session_id", TEXT, nullable=True),
        sa.Column("work_id", TEXT, nullable=True),
        sa.Column("turn_id", TEXT, nullable=True),
        sa.Column("job_id", TEXT, nullable=True),
        sa.Column("outbox_id", TEXT, nullable=True),
        sa.Column("data_json", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index(
        "ix_event_job_id",
        "event",
        ["job_id"],
        unique=False,
        sqlite_where=sa.text("job_id IS NOT NULL"),
        postgresql_where=sa.text("job_id IS NOT NULL"),
    )
    op.create_index(
        "ix_event_outbox_id",
        "event",
        ["outbox_id"],
        unique=False,
        sqlite_where=sa.text("outbox_id IS NOT NULL"),
        postgresql_where=sa.text("outbox_id IS NOT NULL"),
    )
    op.create_index(
        "ix_event_session_id",
        "event",
        ["session_id"],
        unique=False,
        sqlite_where=sa.text("session_id IS NOT NULL"),
        postgresql_where=sa.text("session_id IS NOT NULL"),
    )
    op.create_index(
        "ix_event_trigger_id",
        "event",
        ["trigger_id"],
        unique=False,
        sqlite_where=sa.text("trigger_id IS NOT NULL"),
        postgresql_where=sa.text("trigger_id IS NOT NULL"),
    )
    op.create_index(
        "ix_event_turn_id",
        "event",
        ["turn_id"],
        unique=False,
        sqlite_where=sa.text("turn_id IS NOT NULL"),
        postgresql_where=sa.text("turn_id IS NOT NULL"),
    )
    op.create_index(
        "ix_event_work_id",
        "event",
        ["work_id"],
        unique=False,
        sqlite_where=sa.text("work_id IS NOT NULL"),
        postgresql_where=sa.text("work_id IS NOT NULL"),
    )
    op.create_table(
        "handback",
        sa.Column("trigger_id", TEXT, nullable=False),
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("trigger_id", "session_id"),
    )
    op.create_table(
        "home_file",
        sa.Column("seq", SERIAL, autoincrement=True, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.Column("sha256", TEXT, nullable=False),
        sa.Column("author", TEXT, nullable=False),
        sa.Column("trust", sa.Integer(), nullable=False),
        sa.Column("deleted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("agent", "path", "version"),
    )
    op.create_index("ix_home_file_age", "home_file", ["at_ms"], unique=False)
    op.create_table(
        "job",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("work_id", TEXT, nullable=False),
        sa.Column("call_id", TEXT, nullable=False),
        sa.Column("turn_id", TEXT, nullable=False),
        sa.Column("device_id", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("spec_json", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("stdin_bytes", sa.BigInteger(), nullable=False),
        sa.Column("background", sa.Boolean(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("outcome", TEXT, nullable=False),
        sa.Column("code", sa.BigInteger(), nullable=True),
        sa.Column("started", TEXT, nullable=False),
        sa.Column("detail_json", TEXT, nullable=False),
        sa.Column("sent", sa.Boolean(), nullable=False),
        sa.Column("settled", sa.Boolean(), nullable=False),
        sa.Column("reported", sa.Boolean(), nullable=False),
        sa.Column("stdout_bytes", sa.BigInteger(), nullable=False),
        sa.Column("stderr_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("started_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("ended_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("pruned_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("session_id", "call_id"),
    )
    op.create_index("ix_job_device", "job", ["device_id", "settled"], unique=False)
    op.create_index(
        "ix_job_kept",
        "job",
        ["ended_at_ms"],
        unique=False,
        sqlite_where=sa.text("pruned_at_ms IS NULL"),
        postgresql_where=sa.text("pruned_at_ms IS NULL"),
    )
    op.create_index(op.f("ix_job_session_id"), "job", ["session_id"], unique=False)
    op.create_index(op.f("ix_job_work_id"), "job", ["work_id"], unique=False)
    op.create_table(
        "ledger",
        sa.Column("seq", SERIAL, autoincrement=True, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("work_id", TEXT, nullable=True),
        sa.Column("turn_id", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("policy", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("model", TEXT, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("beside", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("tokens_input", sa.Integer(), nullable=False),
        sa.Column("tokens_cached", sa.Integer(), nullable=False),
        sa.Column("tokens_output", sa.Integer(), nullable=False),
        sa.Column("usd_micros", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index(op.f("ix_ledger_at_ms"), "ledger", ["at_ms"], unique=False)
    op.create_index(op.f("ix_ledger_session_id"), "ledger", ["session_id"], unique=False)
    op.create_index(op.f("ix_ledger_turn_id"), "ledger", ["turn_id"], unique=False)
    op.create_index(op.f("ix_ledger_work_id"), "ledger", ["work_id"], unique=False)
    op.create_table(
        "memory",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("cue", TEXT, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.Column("sources_json", TEXT, nullable=False),
        sa.Column("author", TEXT, nullable=False),
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("turn_id", TEXT, nullable=False),
        sa.Column("trust", sa.Integer(), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("superseded_by", TEXT, nullable=True),
        sa.Column("superseded_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_memory_live",
        "memory",
        ["kind", "cue", "at_ms"],
        unique=False,
        sqlite_where=sa.text("superseded_by IS NULL"),
        postgresql_where=sa.text("superseded_by IS NULL"),
    )
    op.create_index(
        "ix_memory_old",
        "memory",
        ["superseded_at_ms"],
        unique=False,
        sqlite_where=sa.text("superseded_by IS NOT NULL"),
        postgresql_where=sa.text("superseded_by IS NOT NULL"),
    )
    op.create_table(
        "meta",
        sa.Column("key", TEXT, nullable=False),
        sa.Column("value", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "model_endpoint",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("base_url", TEXT, nullable=False),
        sa.Column("probe_json", TEXT, nullable=False),
        sa.Column("probed_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("held_code", TEXT, nullable=False),
        sa.Column("held_reason", TEXT, nullable=False),
        sa.Column("held_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "oidc_flow",
        sa.Column("state_hash", TEXT, nullable=False),
        sa.Column("browser_hash", TEXT, nullable=False),
        sa.Column("nonce", TEXT, nullable=False),
        sa.Column("verifier", TEXT, nullable=False),
        sa.Column("next", TEXT, nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("state_hash"),
    )
    op.create_table(
        "outbox",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("work_id", TEXT, nullable=True),
        sa.Column("trigger_id", TEXT, nullable=True),
        sa.Column("effect_class", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("destination_json", TEXT, nullable=False),
        sa.Column("lane", TEXT, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.Column("idempotency_key", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("may_be_visible", sa.Boolean(), nullable=False),
        sa.Column("due_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("receipt_id", TEXT, nullable=False),
        sa.Column("receipt_url", TEXT, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("settled_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("idempotency_key"),
    )
    op.create_index("ix_outbox_due", "outbox", ["state", "due_at_ms"], unique=False)
    op.create_index(
        "ix_outbox_kept",
        "outbox",
        ["settled_at_ms"],
        unique=False,
        sqlite_where=sa.text("text <> ''"),
        postgresql_where=sa.text("text <> ''"),
    )
    op.create_index(
        "ix_outbox_lane",
        "outbox",
        ["lane", "id"],
        unique=False,
        sqlite_where=sa.text("settled_at_ms IS NULL"),
        postgresql_where=sa.text("settled_at_ms IS NULL"),
    )
    op.create_index(op.f("ix_outbox_receipt_id"), "outbox", ["receipt_id"], unique=False)
    op.create_index(op.f("ix_outbox_trigger_id"), "outbox", ["trigger_id"], unique=False)
    op.create_index(op.f("ix_outbox_work_id"), "outbox", ["work_id"], unique=False)
    op.create_table(
        "output",
        sa.Column("job_id", TEXT, nullable=False),
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("offset", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "stream", "offset"),
    )
    op.create_table(
        "payload",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("media_type", TEXT, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("spilled", TEXT, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("pruned_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_payload_age",
        "payload",
        ["created_at_ms"],
        unique=False,
        sqlite_where=sa.text("pruned_at_ms IS NULL"),
        postgresql_where=sa.text("pruned_at_ms IS NULL"),
    )
    op.create_index(
        "ix_payload_spilled",
        "payload",
        ["spilled"],
        unique=False,
        sqlite_where=sa.text("spilled <> ''"),
        postgresql_where=sa.text("spilled <> ''"),
    )
    op.create_table(
        "person",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("added_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "person_id",
        sa.Column("key", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index(op.f("ix_person_id_name"), "person_id", ["name"], unique=False)
    op.create_table(
        "placement",
        sa.Column("work_id", TEXT, nullable=False),
        sa.Column("device_id", TEXT, nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("placed_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("work_id"),
    )
    op.create_index(op.f("ix_placement_device_id"), "placement", ["device_id"], unique=False)
    op.create_table(
        "receipt",
        sa.Column("source", TEXT, nullable=False),
        sa.Column("native_id", TEXT, nullable=False),
        sa.Column("outbox_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("source", "native_id"),
    )
    op.create_index(op.f("ix_receipt_outbox_id"), "receipt", ["outbox_id"], unique=False)
    op.create_table(
        "relation",
        sa.Column("work_id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("other_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("work_id", "kind", "other_id"),
    )
    op.create_index(op.f("ix_relation_other_id"), "relation", ["other_id"], unique=False)
    op.create_table(
        "request",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("work_id", TEXT, nullable=True),
        sa.Column("session_id", TEXT, nullable=True),
        sa.Column("outbox_id", TEXT, nullable=True),
        sa.Column("prompt", TEXT, nullable=False),
        sa.Column("subject_json", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("answer", TEXT, nullable=False),
        sa.Column("answered_by", TEXT, nullable=False),
        sa.Column("answered_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("trust", sa.Integer(), nullable=True),
        sa.Column("cause_json", TEXT, nullable=False),
        sa.Column("taint_json", TEXT, nullable=False),
        sa.Column("no_route", TEXT, nullable=False),
        sa.Column("again_of", TEXT, nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_request_due", "request", ["state", "expires_at_ms"], unique=False)
    op.create_index(op.f("ix_request_work_id"), "request", ["work_id"], unique=False)
    op.create_table(
        "rules",
        sa.Column("seq", SERIAL, autoincrement=True, nullable=False),
        sa.Column("version", TEXT, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.Column("by", TEXT, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_table(
        "session",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("work_id", TEXT, nullable=True),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("private", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("taint", sa.Integer(), nullable=False),
        sa.Column("ready_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("fold_opened_ms", sa.BigInteger(), nullable=True),
        sa.Column("fold_due_ms", sa.BigInteger(), nullable=True),
        sa.Column("lease_epoch", sa.Integer(), nullable=False),
        sa.Column("lease_until_ms", sa.BigInteger(), nullable=True),
        sa.Column("home_seq", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("nudges", sa.Integer(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("pruned_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_session_kept",
        "session",
        ["ended_at_ms"],
        unique=False,
        sqlite_where=sa.text("pruned_at_ms IS NULL"),
        postgresql_where=sa.text("pruned_at_ms IS NULL"),
    )
    op.create_index(
        "ix_session_ready",
        "session",
        ["ready_at_ms", "lease_until_ms"],
        unique=False,
        sqlite_where=sa.text("ready_at_ms IS NOT NULL"),
        postgresql_where=sa.text("ready_at_ms IS NOT NULL"),
    )
    op.create_index(
        "ix_session_router",
        "session",
        ["id"],
        unique=False,
        sqlite_where=sa.text("kind = 'router'"),
        postgresql_where=sa.text("kind = 'router'"),
    )
    op.create_index(op.f("ix_session_work_id"), "session", ["work_id"], unique=False)
    op.create_table(
        "sign_in",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("remote", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("made_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("seen_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("hash"),
    )
    op.create_index(op.f("ix_sign_in_account_id"), "sign_in", ["account_id"], unique=False)
    op.create_table(
        "sign_in_link",
        sa.Column("hash", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("made_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("spent_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_table(
        "snapshot",
        sa.Column("reader", TEXT, nullable=False),
        sa.Column("object_id", TEXT, nullable=False),
        sa.Column("part", TEXT, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.Column("trust", sa.Integer(), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("reader", "object_id", "part"),
    )
    op.create_index(op.f("ix_snapshot_at_ms"), "snapshot", ["at_ms"], unique=False)
    op.create_table(
        "source",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("heard_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("reconciled_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "spent",
        sa.Column("scope", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("period", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("usd_micros", sa.BigInteger(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("repeats", sa.Integer(), nullable=False),
        sa.Column("millis", sa.BigInteger(), nullable=False),
        sa.Column("unpriced", sa.Integer(), nullable=False),
        sa.Column("extra", sa.Integer(), nullable=False),
        sa.Column("warned_ms", sa.BigInteger(), nullable=True),
        sa.Column("stopped_ms", sa.BigInteger(), nullable=True),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "name", "period"),
    )
    op.create_index(op.f("ix_spent_changed_ms"), "spent", ["changed_ms"], unique=False)
    op.create_index(op.f("ix_spent_stopped_ms"), "spent", ["stopped_ms"], unique=False)
    op.create_table(
        "subscription",
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("thread_id", TEXT, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "thread_id"),
    )
    op.create_index(op.f("ix_subscription_thread_id"), "subscription", ["thread_id"], unique=False)
    op.create_table(
        "taint",
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("ref", TEXT, nullable=False),
        sa.Column("trust", sa.Integer(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "ref"),
    )
    op.create_table(
        "thread",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "thread_key",
        sa.Column("key", TEXT, nullable=False),
        sa.Column("thread_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index(op.f("ix_thread_key_thread_id"), "thread_key", ["thread_id"], unique=False)
    op.create_table(
        "thread_link",
        sa.Column("thread_id", TEXT, nullable=False),
        sa.Column("other_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("thread_id", "other_id"),
    )
    op.create_table(
        "trigger",
        sa.Column("seq", SERIAL, autoincrement=True, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("thread_id", TEXT, nullable=False),
        sa.Column("actor_kind", TEXT, nullable=False),
        sa.Column("actor_id", TEXT, nullable=False),
        sa.Column("person", TEXT, nullable=False),
        sa.Column("trust", sa.Integer(), nullable=False),
        sa.Column("edits_id", TEXT, nullable=True),
        sa.Column("urgent", sa.Boolean(), nullable=False),
        sa.Column("body_json", TEXT, nullable=False),
        sa.Column("payload_id", TEXT, nullable=False),
        sa.Column("occurred_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("received_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("verdict", TEXT, nullable=False),
        sa.Column("rule", TEXT, nullable=False),
        sa.Column("rules_version", TEXT, nullable=False),
        sa.Column("disposition", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("id"),
    )
    op.create_index(op.f("ix_trigger_edits_id"), "trigger", ["edits_id"], unique=False)
    op.create_index(op.f("ix_trigger_payload_id"), "trigger", ["payload_id"], unique=False)
    op.create_index(
        "ix_trigger_person",
        "trigger",
        ["person", "seq"],
        unique=False,
        sqlite_where=sa.text("person <> ''"),
        postgresql_where=sa.text("person <> ''"),
    )
    op.create_index(op.f("ix_trigger_thread_id"), "trigger", ["thread_id"], unique=False)
    op.create_table(
        "turn",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("started_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("ending", TEXT, nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_turn_open",
        "turn",
        ["session_id"],
        unique=False,
        sqlite_where=sa.text("ended_at_ms IS NULL"),
        postgresql_where=sa.text("ended_at_ms IS NULL"),
    )
    op.create_index(op.f("ix_turn_session_id"), "turn", ["session_id"], unique=False)
    op.create_table(
        "wait",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("work_id", TEXT, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("ref", TEXT, nullable=False),
        sa.Column("why", TEXT, nullable=False),
        sa.Column("look_first", TEXT, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("deadline_ms", sa.BigInteger(), nullable=False),
        sa.Column("on_deadline", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_wait_due",
        "wait",
        ["deadline_ms"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index(
        "ix_wait_source",
        "wait",
        ["kind", "ref"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index(op.f("ix_wait_work_id"), "wait", ["work_id"], unique=False)
    op.create_table(
        "watch",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("job_id", TEXT, nullable=False),
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("pattern", TEXT, nullable=False),
        sa.Column("every_ms", sa.BigInteger(), nullable=True),
        sa.Column("next_ms", sa.BigInteger(), nullable=True),
        sa.Column("stdout_seen", sa.BigInteger(), nullable=False),
        sa.Column("stderr_seen", sa.BigInteger(), nullable=False),
        sa.Column("fired", sa.Integer(), nullable=False),
        sa.Column("ended", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_watch_due",
        "watch",
        ["next_ms"],
        unique=False,
        sqlite_where=sa.text("next_ms IS NOT NULL"),
        postgresql_where=sa.text("next_ms IS NOT NULL"),
    )
    op.create_index(op.f("ix_watch_job_id"), "watch", ["job_id"], unique=False)
    op.create_table(
        "work",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("trigger_id", TEXT, nullable=False),
        sa.Column("thread_id", TEXT, nullable=False),
        sa.Column("goal", TEXT, nullable=False),
        sa.Column("criteria_json", TEXT, nullable=False),
        sa.Column("mandate_json", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("plan_json", TEXT, nullable=False),
        sa.Column("evidence_json", TEXT, nullable=False),
        sa.Column("destination_json", TEXT, nullable=False),
        sa.Column("code_json", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("private_to", TEXT, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("session_id"),
        sa.UniqueConstraint("trigger_id"),
    )
    op.create_index(
        "ix_work_live",
        "work",
        ["id"],
        unique=False,
        sqlite_where=sa.text("state <> 'completed' AND state <> 'cancelled'"),
        postgresql_where=sa.text("state <> 'completed' AND state <> 'cancelled'"),
    )
    op.create_index(
        "ix_work_private",
        "work",
        ["private_to"],
        unique=False,
        sqlite_where=sa.text("private_to <> ''"),
        postgresql_where=sa.text("private_to <> ''"),
    )
    op.create_index(op.f("ix_work_state"), "work", ["state"], unique=False)
    op.create_index(op.f("ix_work_thread_id"), "work", ["thread_id"], unique=False)
    op.create_table(
        "workspace",
        sa.Column("device_id", TEXT, nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("remotes_json", TEXT, nullable=False),
        sa.Column("label", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("device_id", "path"),
    )


def downgrade() -> None:
    op.drop_table("workspace")
    op.drop_index(op.f("ix_work_thread_id"), table_name="work")
    op.drop_index(op.f("ix_work_state"), table_name="work")
    op.drop_index(
        "ix_work_private",
        table_name="work",
        sqlite_where=sa.text("private_to <> ''"),
        postgresql_where=sa.text("private_to <> ''"),
    )
    op.drop_index(
        "ix_work_live",
        table_name="work",
        sqlite_where=sa.text("state <> 'completed' AND state <> 'cancelled'"),
        postgresql_where=sa.text("state <> 'completed' AND state <> 'cancelled'"),
    )
    op.drop_table("work")
    op.drop_index(op.f("ix_watch_job_id"), table_name="watch")
    op.drop_index(
        "ix_watch_due",
        table_name="watch",
        sqlite_where=sa.text("next_ms IS NOT NULL"),
        postgresql_where=sa.text("next_ms IS NOT NULL"),
    )
    op.drop_table("watch")
    op.drop_index(op.f("ix_wait_work_id"), table_name="wait")
    op.drop_index(
        "ix_wait_source",
        table_name="wait",
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.drop_index(
        "ix_wait_due",
        table_name="wait",
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.drop_table("wait")
    op.drop_index(op.f("ix_turn_session_id"), table_name="turn")
    op.drop_index(
        "ix_turn_open",
        table_name="turn",
        sqlite_where=sa.text("ended_at_ms IS NULL"),
        postgresql_where=sa.text("ended_at_ms IS NULL"),
    )
    op.drop_table("turn")
    op.drop_index(op.f("ix_trigger_thread_id"), table_name="trigger")
    op.drop_index(
        "ix_trigger_person",
        table_name="trigger",
        sqlite_where=sa.text("person <> ''"),
        postgresql_where=sa.text("person <> ''"),
    )
    op.drop_index(op.f("ix_trigger_payload_id"), table_name="trigger")
    op.drop_index(op.f("ix_trigger_edits_id"), table_name="trigger")
    op.drop_table("trigger")
    op.drop_table("thread_link")
    op.drop_index(op.f("ix_thread_key_thread_id"), table_name="thread_key")
    op.drop_table("thread_key")
    op.drop_table("thread")
    op.drop_table("taint")
    op.drop_index(op.f("ix_subscription_thread_id"), table_name="subscription")
    op.drop_table("subscription")
    op.drop_index(op.f("ix_spent_stopped_ms"), table_name="spent")
    op.drop_index(op.f("ix_spent_changed_ms"), table_name="spent")
    op.drop_table("spent")
    op.drop_table("source")
    op.drop_index(op.f("ix_snapshot_at_ms"), table_name="snapshot")
    op.drop_table("snapshot")
    op.drop_table("sign_in_link")
    op.drop_index(op.f("ix_sign_in_account_id"), table_name="sign_in")
    op.drop_table("sign_in")
    op.drop_index(op.f("ix_session_work_id"), table_name="session")
    op.drop_index(
        "ix_session_router",
        table_name="session",
        sqlite_where=sa.text("kind = 'router'"),
        postgresql_where=sa.text("kind = 'router'"),
    )
    op.drop_index(
        "ix_session_ready",
        table_name="session",
        sqlite_where=sa.text("ready_at_ms IS NOT NULL"),
        postgresql_where=sa.text("ready_at_ms IS NOT NULL"),
    )
    op.drop_index(
        "ix_session_kept",
        table_name="session",
        sqlite_where=sa.text("pruned_at_ms IS NULL"),
        postgresql_where=sa.text("pruned_at_ms IS NULL"),
    )
    op.drop_table("session")
    op.drop_table("rules")
    op.drop_index(op.f("ix_request_work_id"), table_name="request")
    op.drop_index("ix_request_due", table_name="request")
    op.drop_table("request")
    op.drop_index(op.f("ix_relation_other_id"), table_name="relation")
    op.drop_table("relation")
    op.drop_index(op.f("ix_receipt_outbox_id"), table_name="receipt")
    op.drop_table("receipt")
    op.drop_index(op.f("ix_placement_device_id"), table_name="placement")
    op.drop_table("placement")
    op.drop_index(op.f("ix_person_id_name"), table_name="person_id")
    op.drop_table("person_id")
    op.drop_table("person")
    op.drop_index(
        "ix_payload_spilled",
        table_name="payload",
        sqlite_where=sa.text("spilled <> ''"),
        postgresql_where=sa.text("spilled <> ''"),
    )
    op.drop_index(
        "ix_payload_age",
        table_name="payload",
        sqlite_where=sa.text("pruned_at_ms IS NULL"),
        postgresql_where=sa.text("pruned_at_ms IS NULL"),
    )
    op.drop_table("payload")
    op.drop_table("output")
    op.drop_index(op.f("ix_outbox_work_id"), table_name="outbox")
    op.drop_index(op.f("ix_outbox_trigger_id"), table_name="outbox")
    op.drop_index(op.f("ix_outbox_receipt_id"), table_name="outbox")
    op.drop_index(
        "ix_outbox_lane",
        table_name="outbox",
        sqlite_where=sa.text("settled_at_ms IS NULL"),
        postgresql_where=sa.text("settled_at_ms IS NULL"),
    )
    op.drop_index(
        "ix_outbox_kept",
        table_name="outbox",
        sqlite_where=sa.text("text <> ''"),
        postgresql_where=sa.text("text <> ''"),
    )
    op.drop_index("ix_outbox_due", table_name="outbox")
    op.drop_table("outbox")
    op.drop_table("oidc_flow")
    op.drop_table("model_endpoint")
    op.drop_table("meta")
    op.drop_index(
        "ix_memory_old",
        table_name="memory",
        sqlite_where=sa.text("superseded_by IS NOT NULL"),
        postgresql_where=sa.text("superseded_by IS NOT NULL"),
    )
    op.drop_index(
        "ix_memory_live",
        table_name="memory",
        sqlite_where=sa.text("superseded_by IS NULL"),
        postgresql_where=sa.text("superseded_by IS NULL"),
    )
    op.drop_table("memory")
    op.drop_index(op.f("ix_ledger_work_id"), table_name="ledger")
    op.drop_index(op.f("ix_ledger_turn_id"), table_name="ledger")
    op.drop_index(op.f("ix_ledger_session_id"), table_name="ledger")
    op.drop_index(op.f("ix_ledger_at_ms"), table_name="ledger")
    op.drop_table("ledger")
    op.drop_index(op.f("ix_job_work_id"), table_name="job")
    op.drop_index(op.f("ix_job_session_id"), table_name="job")
    op.drop_index(
        "ix_job_kept",
        table_name="job",
        sqlite_where=sa.text("pruned_at_ms IS NULL"),
        postgresql_where=sa.text("pruned_at_ms IS NULL"),
    )
    op.drop_index("ix_job_device", table_name="job")
    op.drop_table("job")
    op.drop_index("ix_home_file_age", table_name="home_file")
    op.drop_table("home_file")
    op.drop_table("handback")
    op.drop_index(
        "ix_event_work_id",
        table_name="event",
        sqlite_where=sa.text("work_id IS NOT NULL"),
        postgresql_where=sa.text("work_id IS NOT NULL"),
    )
    op.drop_index(
        "ix_event_turn_id",
        table_name="event",
        sqlite_where=sa.text("turn_id IS NOT NULL"),
        postgresql_where=sa.text("turn_id IS NOT NULL"),
    )
    op.drop_index(
        "ix_event_trigger_id",
        table_name="event",
        sqlite_where=sa.text("trigger_id IS NOT NULL"),
        postgresql_where=sa.text("trigger_id IS NOT NULL"),
    )
    op.drop_index(
        "ix_event_session_id",
        table_name="event",
        sqlite_where=sa.text("session_id IS NOT NULL"),
        postgresql_where=sa.text("session_id IS NOT NULL"),
    )
    op.drop_index(
        "ix_event_outbox_id",
        table_name="event",
        sqlite_where=sa.text("outbox_id IS NOT NULL"),
        postgresql_where=sa.text("outbox_id IS NOT NULL"),
    )
    op.drop_index(
        "ix_event_job_id",
        table_name="event",
        sqlite_where=sa.text("job_id IS NOT NULL"),
        postgresql_where=sa.text("job_id IS NOT NULL"),
    )
    op.drop_table("event")
    op.drop_table("entry")
    op.drop_table("effect_edit")
    op.drop_table("device_share")
    op.drop_table("device")
    op.drop_index(op.f("ix_delivery_trigger_id"), table_name="delivery")
    op.drop_index(
        "ix_delivery_inbox",
        table_name="delivery",
        sqlite_where=sa.text("taken_n IS NULL"),
        postgresql_where=sa.text("taken_n IS NULL"),
    )
    op.drop_index(
        "ix_delivery_backlog",
        table_name="delivery",
        sqlite_where=sa.text("taken_n IS NULL AND wake"),
        postgresql_where=sa.text("taken_n IS NULL AND wake"),
    )
    op.drop_table("delivery")
    op.drop_table("dedupe")
    op.drop_table("cursor")
    op.drop_table("budget")
    op.drop_index("ix_audit_who", table_name="audit")
    op.drop_index("ix_audit_at", table_name="audit")
    op.drop_table("audit")
    op.drop_index(op.f("ix_api_token_account_id"), table_name="api_token")
    op.drop_table("api_token")
    op.drop_table("agent")
    op.drop_index(op.f("ix_account_subject_account_id"), table_name="account_subject")
    op.drop_table("account_subject")
    op.drop_table("account")
