"""People: the demo's second scene: a mail and a chat message, after the red run turned green."""
