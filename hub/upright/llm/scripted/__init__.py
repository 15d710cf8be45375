"""Scripted model server: a deterministic model that decides from the request alone."""
