"""``upright bench siege``: many threads, many clients, and everything around the hub fails."""
