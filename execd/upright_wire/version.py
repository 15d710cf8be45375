"""The one version of both distributions."""

__version__ = "0.1.0"
