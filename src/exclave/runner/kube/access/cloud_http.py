"""What a cloud refuses, as a refusal of the access to a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.kube.api.errors import AccessRefused


@contextmanager
def refuse_access() -> Iterator[None]:
    """Raise `AccessRefused` where the cloud refuses or does not answer."""
    try:
        yield
    except CloudRefused as refused:
        raise AccessRefused(refused.message, hint=refused.advice or None) from refused
