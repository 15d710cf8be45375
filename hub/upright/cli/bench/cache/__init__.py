"""Cache: P5, how much of a day of prompts a provider has seen before."""
