"""GitHub: webhooks in, comments out."""
