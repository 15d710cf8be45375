"""The plugin door from the inside: loading and connector life cycle."""
