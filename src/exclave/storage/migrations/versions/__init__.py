"""Schema changes, oldest first; each expands before a later one contracts."""
