"""Orgs, accounts and API tokens."""
