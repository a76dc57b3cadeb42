"""Builds of the parts of a config version."""
