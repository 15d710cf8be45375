"""Prompts: what the models are told, in parts; each says for its readers here why it is there."""
