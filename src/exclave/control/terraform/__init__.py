"""Terraform states, workspaces and orphaned resources."""
