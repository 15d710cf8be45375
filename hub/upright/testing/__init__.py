"""For authors of connectors: a context in memory, and the contract that every connector keeps."""
