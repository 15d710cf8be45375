"""The spool: one folder per command, which is the truth about it; there is no second journal."""
