"""The demo: a red CI run turned green before your eyes, checked from outside."""
