"""Diagnostics of an app directory: their codes, the report, and positions in files."""
