"""An AWS on this machine for tests: moto, with what its CloudFormation lacks."""
