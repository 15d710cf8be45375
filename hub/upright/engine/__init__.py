"""The engine: who runs next."""
