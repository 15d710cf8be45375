"""``upright bench``: measures the hub, and tries to break it."""
