"""``python -m upright``."""

from __future__ import annotations

from upright.cli.main import main

if __name__ == "__main__":
    main()
