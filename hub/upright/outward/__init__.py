"""Outward: performs outbox items and keeps receipts."""
