"""`python -m upright_execd`: the command line."""

from __future__ import annotations

from upright_execd.cli import main

main()
