"""What the Terraform modules of all clouds share."""
