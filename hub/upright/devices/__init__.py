"""Devices: pairing, links, command dispatch, output spool."""
