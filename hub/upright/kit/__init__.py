"""For connectors: what several of them need."""
