"""Diagnose why a runner does not work."""
