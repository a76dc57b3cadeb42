"""Tools that the runner starts: found, checked, fetched or built."""
