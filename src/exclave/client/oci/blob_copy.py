"""Copies a blob from one registry to another while it is being downloaded."""

from contextlib import aclosing
from typing import Protocol

from exclave.base.errors import Problem
from exclave.client.oci.calls import Content, OciCalls
from exclave.client.oci.documents import Descriptor
from exclave.client.oci.downloads import BlobContent
from exclave.client.oci.uploads import Upload


class Observer(Protocol):
    """What is told how the copy of a blob gets on."""

    def note_arrived(self, size: int) -> None:
        """Record the number of bytes downloaded so far."""
        ...

    def note_retry(self, problem: Problem, pause_s: float) -> None:
        """Record an interruption, after which the copy resumes."""
        ...


async def copy_blob(
    source: tuple[OciCalls, str],
    target: tuple[OciCalls, str],
    blob: Descriptor,
    observer: Observer,
) -> None:
    """Copy a blob that the target does not have; both ways are resumed where they break.

    `source` and `target` are a registry and a repository in it. The last bytes are sent only when
    the content has been verified, so that changed content is never complete at the target.
    """
    opened = BlobContent(
        *source, blob, note_arrived=observer.note_arrived, note_retry=observer.note_retry
    )
    async with aclosing(opened) as content:

        def read_from(start: int) -> Content:
            return lambda: content.read(start)

        upload = Upload(
            *target,
            blob.digest,
            blob.size,
            read_from,
            give_back=content.aclose,
            note_retry=observer.note_retry,
        )
        await upload.run()
