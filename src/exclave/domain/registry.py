"""Repository names of the registry, access to repositories, and registry errors."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from exclave.base.errors import Kind, Problem
from exclave.base.image_names import CACHE_FOLDER
from exclave.domain.identity import OrgId

MAX_NAME = 255
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_ANY_DIGEST = re.compile(r"[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+")
ALL = "*"


class NameUnknown(Problem):
    """There is no such repository, or it belongs to another org."""

    kind = Kind.NOT_FOUND
    code = "name_unknown"
    hint = "Check the name: it begins with the id of your org."


class NameInvalid(Problem):
    """The text is not a valid repository name."""

    code = "name_invalid"
    hint = "Use a-z and 0-9, split by `.`, `_`, `-` and `/`, 255 characters at most."


class BlobUnknown(Problem):
    """The repository has no such blob."""

    kind = Kind.NOT_FOUND
    code = "blob_unknown"


class ManifestUnknown(Problem):
    """The repository has no such manifest or tag."""

    kind = Kind.NOT_FOUND
    code = "manifest_unknown"


class ManifestInvalid(Problem):
    """The manifest is invalid or of an unsupported type."""

    code = "manifest_invalid"


class ManifestBlobUnknown(Problem):
    """The manifest refers to content that the repository does not have."""

    code = "manifest_blob_unknown"
    hint = "Push what a manifest names before the manifest."


class DigestInvalid(Problem):
    """The digest is malformed, or does not match the content."""

    code = "digest_invalid"
    hint = "Give sha256 or sha512 digests of exactly the bytes that are sent."


class SizeInvalid(Problem):
    """The size of the content is not the declared size."""

    code = "size_invalid"


class ContentTooLarge(Problem):
    """The content exceeds the size limit of the registry."""

    kind = Kind.TOO_LARGE
    code = "content_too_large"


class UploadUnknown(Problem):
    """The upload does not exist, has ended, or has expired."""

    kind = Kind.NOT_FOUND
    code = "blob_upload_unknown"
    hint = "Begin the upload again."


class UploadInvalid(Problem):
    """The upload request is invalid."""

    code = "blob_upload_invalid"


class WrongPlace(Problem):
    """The chunk does not start at the end of the upload, which is at `size`."""

    kind = Kind.CONFLICT
    code = "upload_out_of_order"
    hint = "Ask for the state of the upload and go on from there."


class Denied(Problem):
    """The caller may see the repository, but may not do this in it."""

    kind = Kind.FORBIDDEN
    code = "registry_denied"
    hint = "Use a token that allows it: `exclave registry token --push`."


@dataclass(frozen=True, slots=True)
class RegistryScope:
    """The access of a credential: repositories of one org, for pulling or also for pushing."""

    org: OrgId
    by: str
    repositories: tuple[str, ...]
    """Names, `folder/*` for everything below a folder, `*` for everything."""
    push: bool = False
    delete: bool = False
    caches: bool = False
    """Whether layers of builds may be pushed: what is there becomes part of later images."""


class Tag(NamedTuple):
    """A tag and the manifest that it means."""

    tag: str
    digest: str
    changed_at: datetime


class Repository(NamedTuple):
    """A repository of an org, and how much is in it."""

    repository: str
    manifests: int
    tags: int
    size: int


@dataclass(frozen=True, slots=True)
class Place:
    """A repository of an org."""

    org: OrgId
    repository: str

    @property
    def name(self) -> str:
        """The full name, as clients use it."""
        return f"{self.org}/{self.repository}"


def find_place(
    scope: RegistryScope, name: str, *, push: bool = False, delete: bool = False
) -> Place:
    """Return the repository that a name means for a caller.

    A repository that the caller cannot access is reported as unknown.
    """
    org, _, repository = check_name(name).partition("/")
    if org != scope.org or not any(covers(pattern, repository) for pattern in scope.repositories):
        raise NameUnknown("there is no such repository")
    if (push and not scope.push) or (delete and not scope.delete):
        raise Denied("this credential does not allow changes to the repository")
    if push and is_cache(repository) and not scope.caches:
        hint = "Push to another repository."
        raise Denied("only build runners push layers of builds", hint=hint)
    return Place(scope.org, repository)


def covers(pattern: str, repository: str) -> bool:
    """Return whether a pattern matches a repository."""
    if not repository:
        return False
    if pattern.endswith(ALL):
        return repository.startswith(pattern.removesuffix(ALL))
    return repository == pattern


def is_cache(repository: str) -> bool:
    """Return whether a repository holds layers of builds, which may go at any time."""
    return repository.startswith(f"{CACHE_FOLDER}/")


def check_name(name: str) -> str:
    """Return a valid name; raise `NameInvalid` for any other."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise NameInvalid("this cannot be the name of a repository")
    return name


def is_tag(text: str) -> bool:
    """Return whether the text is a valid tag."""
    return _TAG.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """Return whether the text is a digest of a supported algorithm."""
    return _DIGEST.fullmatch(text) is not None


def check_digest(text: str) -> str:
    """Return a sha256 or sha512 digest; raise `DigestInvalid` for anything else."""
    if is_digest(text):
        return text
    if _ANY_DIGEST.fullmatch(text):
        raise DigestInvalid("the registry knows sha256 and sha512 digests only")
    raise DigestInvalid("this is not a digest")
