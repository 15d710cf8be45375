"""Homes of agents: templates, what the prompt holds of one, the folder that mirrors it."""
