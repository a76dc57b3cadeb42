"""Names of images as people write them, and the registries that they mean."""

import re
from dataclasses import dataclass
from typing import NoReturn

from exclave.base.image_names import expand_image
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_DOCKER_HUB = "docker.io"
_API_HOSTS = {_DOCKER_HUB: "registry-1.docker.io", "index.docker.io": "registry-1.docker.io"}
_LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")
_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_HOST = re.compile(rf"({_LABEL}(\.{_LABEL})*|\[[0-9a-f:]+\])(:\d{{1,5}})?")
_NAME = re.compile(r"[a-z0-9]+((\.|__?|-+|/)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")


@dataclass(frozen=True, slots=True)
class ImageName:
    """A repository of a registry, with a tag or a digest if one was given."""

    host: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """The repository with its host, as it is written in manifests."""
        return f"{self.host}/{self.path}"

    @property
    def url(self) -> str:
        """The address of the registry's API. Only a registry on the same machine is without TLS."""
        scheme = "http" if _LOOPBACK.fullmatch(self.host) else "https"
        return f"{scheme}://{_API_HOSTS.get(self.host, self.host)}"


def parse_image(text: str) -> ImageName:
    """Return what the name of an image means; raise if it is not one.

    Short names are those of Docker Hub: `nginx` is `docker.io/library/nginx`.
    """
    name = text.strip().rpartition("://")[2]
    name, _, digest = name.partition("@")
    head, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    if not slash and tag.isdecimal() and "." in last:
        _refuse(text)
    host, _, path = expand_image(f"{head}{slash}{last}").partition("/")
    if not _NAME.fullmatch(path) or not _HOST.fullmatch(host) or (tag and not _TAG.fullmatch(tag)):
        _refuse(text)
    if digest and not _DIGEST.fullmatch(digest):
        _refuse(text)
    return ImageName(host, path, tag, digest)


def _refuse(text: str) -> NoReturn:
    message = (
        f"`{text[:200]}` is not the name of an image: write it like `registry.example.com/app`"
    )
    raise WorkFailed(Reason.SOURCE_INVALID, message)
