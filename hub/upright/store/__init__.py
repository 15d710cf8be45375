"""The store: the only rows, named queries, one transaction a step."""
