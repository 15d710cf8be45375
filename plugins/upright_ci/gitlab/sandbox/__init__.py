"""A GitLab that runs here: strict, with a memory, and faults on demand."""
