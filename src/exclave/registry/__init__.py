"""The embedded OCI registry: the distribution API over the blob store, on the Runner API's port."""

from exclave.registry.app import build_registry_app as build_registry_app
