"""Container images on the wire: copies into the install's registry, and images by digest."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from exclave.wire.model import Request
from exclave.wire.roles import JobRole
from exclave.wire.spec_fields import Artifact, Digest, TimeoutS

ImageRepository = Annotated[
    str,
    StringConstraints(
        pattern=r"^[a-z0-9.-]+(:[0-9]{1,5})?(/[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*)*$", max_length=500
    ),
]
"""A repository with the host of its registry, without scheme and tag."""
ImageTag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")]
Platform = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]+/[a-z0-9_]+(/[a-z0-9]+)?$", max_length=60)
]
"""Such as `linux/amd64`."""


class PinnedImage(Request):
    """An image that was copied into the install's registry, and what its tag stands for."""

    repository: ImageRepository
    tag: ImageTag
    digest: Digest
    pull_secret: bool = False
    """Whether nodes need the login of the Stack to pull it."""


class ImageSource(Request):
    """An image of another registry; the build resolves its tag to a digest and copies it."""

    type: Literal["image"] = "image"
    image: Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\s\x00]+$")]
    """As people write it, such as `nginx` or `ghcr.io/acme/app`."""
    tag: Annotated[str, StringConstraints(max_length=128)] = ""
    update_policy: Annotated[str, StringConstraints(max_length=200)] = ""
    """A constraint for versions: the highest tag that fits is taken."""
    registry: Literal["public", "ecr", "gar", "acr"] = "public"
    """Whose login is used; `public` is also for names and passwords of the build runner."""
    region: Annotated[str, StringConstraints(max_length=60)] = ""
    role: Annotated[str, StringConstraints(max_length=300)] = ""
    """The role, service account or client id that reads the image."""
    verification: Annotated[
        dict[str, Annotated[str, StringConstraints(max_length=20_000)]], Field(max_length=20)
    ] = {}
    """What the signatures of the image must be."""


class RegistryRef(Request):
    """The registry that an install's images are copied into; the runner logs in to it."""

    type: Literal["ecr", "gar", "acr", "stack"]
    """`stack`: the one that the customer named when they ran the Stack, if they did."""
    repository: ImageRepository | Literal[""] = ""
    """Where the image goes; empty for `stack`, which only the runner knows."""
    folder: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=63)]
    """The name of the component: the last part of the repository of a Stack's registry."""
    region: Annotated[str, StringConstraints(max_length=60)] = ""
    role: Annotated[str, StringConstraints(max_length=200)] = ""


class ImageSpec(Request):
    """Copy an image from the vendor's registry into that of the install, or remove its tag.

    Without a registry of the install, a public image is named by its `source` and not copied.
    Outputs: `image`, with `repository`, `tag`, `digest`, `ref`, `media_type`, `size`, `platforms`,
    `pull_secret` and `source`.
    """

    kind: Literal["image"] = "image"
    destroy: bool = False
    artifact: Artifact
    target: RegistryRef
    tag: ImageTag
    platforms: Annotated[list[Platform], Field(max_length=20)] = []
    """Which variants of the image; empty: all."""
    source: ImageRepository | Literal[""] = ""
    """The public repository that the image was built from; empty if there is none."""
    role: JobRole = None
    timeout_s: TimeoutS = 300.0
