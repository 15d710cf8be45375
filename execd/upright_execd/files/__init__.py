"""Files: a small program that reads and writes files for the hub, beneath one folder."""
