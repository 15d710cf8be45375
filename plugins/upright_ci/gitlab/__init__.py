"""GitLab: webhooks in, notes out, and a sandbox that plays GitLab."""
