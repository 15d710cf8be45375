"""The verbs of the command line, one module each; each has a click command named ``verb``."""
