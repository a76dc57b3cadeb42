"""Names in the registry, who reaches which repository, and what a registry refuses."""

import re
from dataclasses import dataclass

from exclave.base.errors import Kind, Problem
from exclave.domain.identity import OrgId

MAX_NAME = 255
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ANY_DIGEST = re.compile(r"[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+")
ALL = "*"


class NameUnknown(Problem):
    """There is no such repository, or it belongs to somebody else."""

    kind = Kind.NOT_FOUND
    code = "name_unknown"
    hint = "Check the name: it begins with the id of your org."


class NameInvalid(Problem):
    """The text cannot be the name of a repository."""

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
    """The document is not what the registry stores."""

    code = "manifest_invalid"


class ManifestBlobUnknown(Problem):
    """The document names content that the repository does not have."""

    code = "manifest_blob_unknown"
    hint = "Push what a manifest names before the manifest."


class DigestInvalid(Problem):
    """The digest is not one, or the content is not what it names."""

    code = "digest_invalid"
    hint = "Give sha256 digests of exactly the bytes that are sent."


class SizeInvalid(Problem):
    """The content is larger or smaller than it was said to be."""

    code = "size_invalid"


class ContentTooLarge(Problem):
    """The content is larger than the registry stores."""

    kind = Kind.TOO_LARGE
    code = "content_too_large"


class UploadUnknown(Problem):
    """The upload was never begun, has ended, or was forgotten."""

    kind = Kind.NOT_FOUND
    code = "blob_upload_unknown"
    hint = "Begin the upload again."


class UploadInvalid(Problem):
    """The upload cannot go on like this."""

    code = "blob_upload_invalid"


class WrongPlace(Problem):
    """The piece does not begin where the upload ends; `size` tells where that is."""

    kind = Kind.CONFLICT
    code = "upload_out_of_order"
    hint = "Ask for the state of the upload and go on from there."


class Denied(Problem):
    """The caller sees the repository, and may not do this in it."""

    kind = Kind.FORBIDDEN
    code = "registry_denied"
    hint = "Use a token that allows it: `exclave registry token --push`."


@dataclass(frozen=True, slots=True)
class RegistryScope:
    """What a credential opens: repositories of one org, for pulling or also for pushing."""

    org: OrgId
    by: str
    repositories: tuple[str, ...]
    """Names, `folder/*` for everything below a folder, `*` for everything."""
    push: bool = False
    delete: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A repository of an org."""

    org: OrgId
    repository: str

    @property
    def name(self) -> str:
        """The whole name, as clients say it."""
        return f"{self.org}/{self.repository}"


def find_place(
    scope: RegistryScope, name: str, *, push: bool = False, delete: bool = False
) -> Place:
    """Find the repository that a name means for a caller.

    What is out of reach looks like what is not there.
    """
    org, _, repository = check_name(name).partition("/")
    if org != scope.org or not any(covers(each, repository) for each in scope.repositories):
        raise NameUnknown("there is no such repository")
    if (push and not scope.push) or (delete and not scope.delete):
        raise Denied("this credential does not allow to change the repository")
    return Place(scope.org, repository)


def covers(pattern: str, repository: str) -> bool:
    """Tell whether a pattern means a repository."""
    if not repository:
        return False
    if pattern.endswith(ALL):
        return repository.startswith(pattern.removesuffix(ALL))
    return repository == pattern


def check_name(name: str) -> str:
    """Pass a good name on; refuse any other."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise NameInvalid("this cannot be the name of a repository")
    return name


def is_pattern(text: str) -> bool:
    """Tell whether the text names one repository, the content of a folder, or everything."""
    if text == ALL:
        return True
    return len(text) <= MAX_NAME and _NAME.fullmatch(text.removesuffix("/*")) is not None


def is_tag(text: str) -> bool:
    """Tell whether the text can be a tag."""
    return _TAG.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """Tell whether the text is a digest that we use."""
    return _DIGEST.fullmatch(text) is not None


def check_digest(text: str) -> str:
    """Pass a sha256 digest on; refuse any other."""
    if is_digest(text):
        return text
    if _ANY_DIGEST.fullmatch(text):
        raise DigestInvalid("the registry knows sha256 digests only")
    raise DigestInvalid("this is not a digest")
