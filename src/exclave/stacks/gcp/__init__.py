"""The Stack for a project in Google Cloud: one Terraform module."""
