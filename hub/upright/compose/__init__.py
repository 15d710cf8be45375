"""The composition root: the one place where the world is built."""
