"""The Stack in Azure as a Terraform module, in files by subject."""
