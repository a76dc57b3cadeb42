"""Checks of fetched source, and the provenance of built artifacts."""
