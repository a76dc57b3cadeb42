"""The Stack as a Terraform module, in files by subject."""
