"""A client for registries that implement the OCI distribution specification."""
