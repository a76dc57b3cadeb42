"""Command lines of buildah. It needs no daemon; images stay in folders of the job."""

from collections.abc import Mapping, Sequence
from pathlib import Path

IMAGE = "localhost/exclave/build:latest"
"""The name of the image in the folders of the job; nobody else sees it."""


def build(
    program: str,
    stores: Path,
    context: Path,
    *,
    dockerfile: Path,
    args: Mapping[str, str],
    target: str = "",
    platforms: Sequence[str] = (),
    secrets: Mapping[str, Path] | None = None,
    cache: str = "",
) -> tuple[str, ...]:
    """Build an image; the same input gives the same digest, so no time and no name is in it.

    With several platforms it becomes a list of images. Secrets are named by their files. Layers are
    taken from the repository `cache` and pushed there, one per instruction.
    """
    name = f"--manifest={IMAGE}" if len(platforms) > 1 else f"--tag={IMAGE}"
    return (
        *_begin(program, stores),
        "bud",
        "--isolation=chroot",
        "--format=oci",
        "--timestamp=0",
        "--identity-label=false",
        "--pull=true",
        f"--layers={'true' if cache else 'false'}",
        *((f"--cache-from={cache}", f"--cache-to={cache}") if cache else ()),
        *(f"--build-arg={name}={value}" for name, value in sorted(args.items())),
        *((f"--target={target}",) if target else ()),
        *((f"--platform={','.join(platforms)}",) if platforms else ()),
        *(f"--secret=id={secret},src={file}" for secret, file in sorted((secrets or {}).items())),
        f"--signature-policy={stores / 'policy.json'}",
        f"--file={dockerfile}",
        name,
        str(context),
    )


def export(program: str, stores: Path, layout: Path, *, is_list: bool = False) -> tuple[str, ...]:
    """Write the image as an OCI layout, from where the runner pushes it itself."""
    return (
        *_begin(program, stores),
        *(("manifest", "push", "--all") if is_list else ("push",)),
        "--format=oci",
        f"--signature-policy={stores / 'policy.json'}",
        IMAGE,
        f"oci:{layout}:build",
    )


def _begin(program: str, stores: Path) -> tuple[str, ...]:
    return (
        program,
        f"--root={stores / 'root'}",
        f"--runroot={stores / 'run'}",
        "--storage-driver=vfs",
        f"--registries-conf={stores / 'registries.conf'}",
    )
