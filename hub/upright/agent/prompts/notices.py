"""Notices: sentences that the runtime puts into a transcript."""

from __future__ import annotations

from typing import Final

# B8.7: the model is asked once before a person is
NUDGE: Final = (
    "You said something, but the work item neither waits nor is complete. Call wait, ask or "
    "complete, or go on with the work."
)
# B9.3: why calls were answered `cancelled`, and which trigger of the batch comes first
CUT: Final = (
    "You were interrupted. A thought that was under way is dropped, calls that had not begun were "
    "not made. The last trigger of this batch is the urgent one: deal with it first."
)
# B9.5: tools that change something are refused beside a turn; told beforehand, none is tried
BESIDE: Final = (
    "This is answered beside your work, which goes on meanwhile. Answer the question above in one "
    "short message. You may call read, and no other tool; nothing you say here changes anything."
)
# B5.5: what code can't know: why things were decided. Ids, waits and questions are kept by code.
SUMMARISE: Final = (
    "Your context is full: what is above will leave it. Write the summary that you go on with, in "
    "at most 40 lines, without calling a tool: what was decided and why, what is under way and "
    "where it stands, what was promised to whom, what was tried and did not work. Name the id of "
    "whatever you speak of, letter by letter: by it you can read it again. Open items, waits, "
    "questions and running jobs are listed for you beside it."
)
