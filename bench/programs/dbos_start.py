"""DBOS: how long from a workflow's enqueue to its first line, one at a time, in one process."""

from __future__ import annotations

import argparse
import json
import threading
from time import perf_counter

from dbos import DBOS

STARTED = threading.Event()
AT = [0.0]
START_S = 30.0


def handle(number: int) -> int:
    """Note when this began."""
    AT[0] = perf_counter()
    STARTED.set()
    return number


def main() -> None:
    """Measure, and print milliseconds as a JSON list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database")
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--polling-s", type=float, required=True)
    given = parser.parse_args()
    DBOS(config={"name": "bench", "system_database_url": given.database, "log_level": "ERROR"})
    workflow = DBOS.workflow(name="handle")(handle)
    DBOS.launch()
    DBOS.register_queue("hooks", polling_interval_sec=given.polling_s)
    took = []
    for number in range(given.samples + 1):
        STARTED.clear()
        threading.Event().wait(given.polling_s * (number * 0.37 % 1))  # anywhere between two polls
        began = perf_counter()
        running = DBOS.enqueue_workflow("hooks", workflow, number)
        if not STARTED.wait(START_S):
            said = f"workflow {number} did not start within {START_S} s"
            raise TimeoutError(said)
        took.append(1000 * (AT[0] - began))
        running.get_result(polling_interval_sec=0.02)
    DBOS.destroy()
    print(json.dumps(took[1:]))  # the first one waits for the queue's thread


if __name__ == "__main__":
    main()
