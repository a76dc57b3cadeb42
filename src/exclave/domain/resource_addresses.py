"""Addresses of what a workspace has deployed: resources of Terraform, objects of Kubernetes."""

import re

from exclave.domain import tf_addresses

_GROUP = r"[a-z0-9*](?:[a-z0-9.*-]{0,251}[a-z0-9*])?"
_NAMESPACE = r"[a-z0-9*](?:[a-z0-9*-]{0,61}[a-z0-9*])?"
_NAME = r"[A-Za-z0-9_.:@*+=,~-]{1,253}"
_OBJECT = re.compile(rf"(?:{_GROUP}/)?[A-Z*][A-Za-z0-9*]{{0,62}}(?:/{_NAMESPACE})?/{_NAME}")
"""`apps/Deployment/ns/name`, `ConfigMap/ns/name`, `Namespace/name`; a part may be masked: `***`."""


def read_resource_address(text: str) -> str:
    """Return an address in its canonical form, or a visible text if it is invalid."""
    return text if is_object_address(text) else tf_addresses.read_address(text)


def is_object_address(text: str) -> bool:
    """Return whether an address is that of an object of a cluster."""
    return _OBJECT.fullmatch(text) is not None
