"""Command lines as data, so that tests can compare them."""
