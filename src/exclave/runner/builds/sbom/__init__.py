"""Bills of materials: what an artifact contains, read from its files without running it."""
