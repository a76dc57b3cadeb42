"""Uploads to the registry: the pieces that have arrived of a blob."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict


class StoredPart(TypedDict):
    """The stored form of a piece."""

    key: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class UploadPart:
    """A piece of an upload: its key in the blob store, its size and its digest."""

    key: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Upload:
    """An open upload and how much of it has arrived."""

    id: str
    size: int
    parts: tuple[UploadPart, ...] = ()


def read_parts(stored: Sequence[StoredPart]) -> tuple[UploadPart, ...]:
    """Return the pieces of an upload from their stored form."""
    return tuple(UploadPart(**part) for part in stored)


def write_parts(parts: Sequence[UploadPart]) -> list[StoredPart]:
    """Return the stored form of the pieces of an upload."""
    return [StoredPart(key=part.key, size=part.size, digest=part.digest) for part in parts]
