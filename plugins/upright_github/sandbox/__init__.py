"""A strict, stateful GitHub of our own on a loopback port: for demo, tests, plugin authors."""
