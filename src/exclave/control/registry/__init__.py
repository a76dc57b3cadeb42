"""Use cases of the embedded OCI registry."""
