"""Pour: connect to a port and send so many bytes: the sending end of a bare socket."""

from __future__ import annotations

import socket
import sys

CHUNK = 256 * 1024


def main(port: int, size: int) -> None:
    """Send, and hang up."""
    piece = bytes(CHUNK)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        for begin in range(0, size, CHUNK):
            connection.sendall(piece[: size - begin])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
