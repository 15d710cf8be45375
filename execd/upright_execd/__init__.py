"""The daemon that runs a hub's commands on this machine."""
