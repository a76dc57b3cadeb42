"""Quotas and usage per org, and bounds on streams."""
