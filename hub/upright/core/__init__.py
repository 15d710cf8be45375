"""The pure core: state machines as tables, no I/O, no clock, no ids."""
