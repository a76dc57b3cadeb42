"""Attaches the bill of materials to an artifact, as a referrer beside its provenance."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from exclave import __version__
from exclave.client.oci.documents import PushedManifest
from exclave.runner.builds.recipe import BuildWork
from exclave.runner.builds.sbom.packages import Package
from exclave.runner.builds.sbom.spdx import Subject, make_spdx
from exclave.runner.jobs.workspace import write_private
from exclave.wire.builds import SBOM_TYPE

_MOST_PACKAGES = 100_000


@dataclass(frozen=True, slots=True)
class Contents:
    """What is known about the contents of an artifact."""

    packages: Sequence[Package]
    notes: Sequence[str] = ()
    """What could not be read."""


async def attach_sbom(
    work: BuildWork, pushed: PushedManifest, contents: Contents, purpose: str
) -> None:
    """Write the bill of materials of an artifact and push it as its referrer."""
    notes = [*contents.notes]
    if len(contents.packages) > _MOST_PACKAGES:
        notes.append(f"only {_MOST_PACKAGES} of {len(contents.packages)} packages are listed")
    document = make_spdx(
        Subject(work.spec.repository, pushed.digest, purpose),
        contents.packages[:_MOST_PACKAGES],
        notes=notes,
        version=__version__,
        created_at=work.context.clock.now(),
    )
    file = work.context.job.folder / "sbom.spdx.json"
    await asyncio.to_thread(write_private, file, json.dumps(document).encode())
    attached = await work.registry.push_artifact(
        work.spec.repository,
        artifact_type=SBOM_TYPE,
        layer=file,
        layer_type=SBOM_TYPE,
        annotations={},
        subject=pushed,
    )
    listed_notes = "".join(f"; {note}" for note in notes)
    work.context.log.system(
        f"packages: {len(contents.packages)}, sbom {attached.digest}{listed_notes}"
    )
