"""Stacks: created for a customer, fetched by code, reporting home."""
