"""Secrets that the runner holds, and sealing of what leaves it."""
