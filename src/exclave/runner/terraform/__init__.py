"""Terraform and OpenTofu: plan, apply, state, journal, policies."""
