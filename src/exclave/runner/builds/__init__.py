"""Recipes of artifacts by type, checks of fetched source, provenance."""
