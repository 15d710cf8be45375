"""Settings: one TOML file, the environment and flags, read once; each value knows its origin."""
