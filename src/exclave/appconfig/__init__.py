"""App directories: reading, checking, and the dependencies between components."""
