"""Record: puts an end on disk: the receipt, where no shim left one, and a line of the log."""

from __future__ import annotations

import logging
from typing import Final

from upright_execd.house import House
from upright_execd.spool.accepted import Receipt
from upright_wire.command import Outcome

log: Final = logging.getLogger("upright.execd")


def write_receipt(house: House, receipt: Receipt) -> None:
    """Write the receipt of a command that ended without a final record of its shim. Blocks.

    A disk that refuses it is logged, and the hub is told the end all the same: what is lost is that
    a repeat of the command after a crash would be recognised.
    """
    try:
        house.spool.folder(receipt.command_id).write_receipt(receipt)
    except OSError as error:
        facts = {"command": receipt.command_id, "why": str(error)}
        log.warning("receipt.unwritten", extra=facts)
    note_end(house, receipt.command_id, receipt.outcome)


def note_end(house: House, command_id: str, outcome: Outcome) -> None:
    """Write the end into the audit log. Blocks; a disk that refuses is logged."""
    facts = {
        "command": command_id,
        "ending": outcome.ending,
        "number": outcome.number,
        "text": outcome.text,
    }
    log.info("command.final", extra=facts)
    try:
        house.audit.write("command.final", **facts)
    except OSError as error:
        log.warning("audit.unwritten", extra={"command": command_id, "why": str(error)})
