"""Stores CloudFormation templates in a bucket of the operator, from where AWS can read them.

CloudFormation reads templates from S3 only. A template holds no secret and is named by its SHA-256,
so the objects may be public.
"""

from exclave.base.aws_regions import name_service
from exclave.storage.blobs.base import Blobs

FOLDER = "stacks"


class TemplateBucket:
    """The operator's bucket. A server stores each template once, and remembers that it did."""

    def __init__(self, objects: Blobs, bucket: str, region: str) -> None:
        self._objects = objects
        self._url = f"https://{bucket}.{name_service('s3', region)}"
        self._stored: set[str] = set()

    def has(self, sha256: str) -> bool:
        """Return whether this server has stored a template."""
        return sha256 in self._stored

    async def store(self, sha256: str, template: bytes) -> None:
        """Store a template."""
        await self._objects.put(_write_key(sha256), template)
        self._stored.add(sha256)

    def build_url(self, sha256: str) -> str:
        """Return the address of a template."""
        return f"{self._url}/{_write_key(sha256)}"


def _write_key(sha256: str) -> str:
    return f"{FOLDER}/{sha256}.json"
