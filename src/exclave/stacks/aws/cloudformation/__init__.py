"""The Stack in AWS's own language: one CloudFormation template."""
