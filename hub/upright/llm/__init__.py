"""Model access: the only importer of openai."""
