"""Job logs: append, read, search, merge."""
