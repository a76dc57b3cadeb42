"""The Stack of an install in an AWS account, as CloudFormation and as Terraform."""
