"""Bell: tells the daemon that there is something new; nobody has to be there to hear it."""

from __future__ import annotations

import os


class Bell:
    """A FIFO that all shims of one daemon share; each word is a command id and a line end."""

    def __init__(self, path: str, command_id: str) -> None:
        self._path, self._word, self._handle = path, f"{command_id}\n".encode("ascii"), -1

    def ring(self) -> None:
        """Ring once; a full or missing bell is no fault: the daemon looks by itself, too."""
        try:
            if self._handle < 0:
                self._handle = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            os.write(self._handle, self._word)
        except BlockingIOError:
            pass  # it is ringing already
        except OSError:
            self._forget()

    def _forget(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
