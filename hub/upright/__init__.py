"""Upright: an always-on agent hub."""
