"""The shim: the small process that owns one command; it outlives the daemon.

Its modules import as little as they can (no json, typing, dataclasses, pathlib): a shim is started
for each command, and each of these costs more than the whole interpreter.
"""
