"""A strict, stateful sandbox that plays Slack: Web API, Socket Mode, signed events, faults."""
