"""HTTP: hooks, device endpoint, JSON API, events stream."""
