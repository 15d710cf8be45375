"""Tools: what an agent may call; each is a unit of work in the store."""
