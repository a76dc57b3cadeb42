"""Recipe of overlays: kustomize runs once, here, and installs get plain objects."""

import asyncio
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from exclave.base.errors import Problem
from exclave.base.json_values import Json
from exclave.runner.builds.overlay_checks import NAMES, check_overlay
from exclave.runner.builds.recipe import BuildWork, BuiltArtifact
from exclave.runner.builds.source_checks import locate_folder
from exclave.runner.builds.sources import FetchedFolder, fetch_folder
from exclave.runner.commands import kubectl
from exclave.runner.jobs.context import JobContext
from exclave.runner.jobs.workspace import write_private
from exclave.runner.kube.api.objects import SourceObject, describe_flaws, read_objects
from exclave.runner.kube.api.yaml_writer import write_documents
from exclave.runner.kube.changes.state import key_of
from exclave.runner.kube.changes.waves import find_wave
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.wire.jobs import Reason
from exclave.wire.specs import KustomizeOptions

LAYER_TYPE: Final = "application/vnd.exclave.kubernetes_manifest.v1+yaml"
_MOST_CHARS: Final = 2000
_MOST_BYTES: Final = 16 << 20
_NOWHERE: Final = "http://127.0.0.1:9"
"""A proxy that is not there: a build reads what was fetched, and nothing else."""


async def build_kustomize(work: BuildWork) -> BuiltArtifact:
    """Fetch an overlay, build its objects, check and sort them, and push them as one file."""
    context, spec = work.context, work.spec
    source = await fetch_folder(work)
    options = spec.kustomize or KustomizeOptions(path=".")
    overlay = await asyncio.to_thread(_prepare, context, source, options)
    work.begin("kustomize")
    text = await _run(work, overlay, options)
    objects = await asyncio.to_thread(sort_objects, text)
    file = context.job.folder / "manifest.yaml"
    content = write_documents([entry.value for entry in objects]).encode()
    file.write_bytes(content)
    layer = f"sha256:{hashlib.sha256(content).hexdigest()}"
    context.log.system(f"objects: {len(objects)}, bytes: {len(content)}, layer: {layer}")
    work.begin("push")
    pushed = await work.registry.push_artifact(
        spec.repository,
        artifact_type=f"application/vnd.exclave.{spec.type}.v1",
        layer=file,
        layer_type=LAYER_TYPE,
        annotations={},
    )
    return BuiltArtifact(pushed, layer, len(content), len(objects), source.commit)


def sort_objects(text: str) -> list[SourceObject]:
    """Return the objects in the order in which they are applied; duplicates are refused."""
    try:
        objects = read_objects(text)
    except Problem as problem:
        raise WorkFailed(Reason.SOURCE_INVALID, problem.message) from problem
    flaws: list[str] = []
    known: set[tuple[str, str, str, str]] = set()
    for entry in objects:
        if key_of(entry.id) in known:
            flaws.append(f"`{entry.id.address}` is there twice")
        known.add(key_of(entry.id))
    if flaws:
        raise WorkFailed(Reason.SOURCE_INVALID, describe_flaws(flaws))
    if not objects:
        raise WorkFailed(Reason.SOURCE_INVALID, "the overlay gives no objects")
    return sorted(objects, key=lambda entry: (find_wave(entry.id, entry.value), entry.id))


def _prepare(context: JobContext, source: FetchedFolder, options: KustomizeOptions) -> Path:
    """Return the folder to build: the overlay, or one of ours that adds the patches to it."""
    with context.workspace.touch():
        within = os.path.relpath(source.folder, source.root)
        overlay = locate_folder(source.root, os.path.normpath(f"{within}/{options.path}"))
        if not any((overlay / name).is_file() for name in NAMES):
            message = f"`{options.path}` has no kustomization.yaml"
            raise WorkFailed(Reason.SOURCE_INVALID, message)
        check_overlay(source.root, overlay)
        if not options.patches:
            return overlay
        patches = [_read_patch(source, name) for name in options.patches]
        return _write_overlay(context.workspace.work / "overlay", overlay, patches)


def _read_patch(source: FetchedFolder, name: str) -> str:
    file = (source.folder / name).resolve()
    if not file.is_relative_to(source.root.resolve()) or not file.is_file():
        raise WorkFailed(Reason.SOURCE_INVALID, f"there is no patch `{name}` in the source")
    return file.read_text()


def _write_overlay(folder: Path, overlay: Path, patches: Sequence[str]) -> Path:
    """Write an overlay that patches another one; the texts are in it, so it reads no other file."""
    folder.mkdir(mode=0o700)
    entries: list[Json] = [{"patch": text} for text in patches]
    content: dict[str, Json] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(overlay, folder)],
        "patches": entries,
    }
    write_private(folder / NAMES[0], json.dumps(content).encode())
    return folder


async def _run(work: BuildWork, overlay: Path, options: KustomizeOptions) -> str:
    context = work.context
    tool = (await work.find_tool("kubectl")).path
    helm = (await work.find_tool("helm")).path if options.enable_helm else ""
    argv = kubectl.kustomize(tool, overlay, restrict=options.restrict, helm=helm)
    command = Command(argv, _close_env(context), context.workspace.work)
    printed = await context.capture(command, name="`kubectl kustomize`", most_bytes=_MOST_BYTES)
    for line in printed.stderr.splitlines():
        context.log.system(line)
    if printed.code != 0:
        complaint = printed.stderr.strip().removeprefix("error: ")
        why = complaint.replace(f"{context.workspace.work}/source/", "")[-_MOST_CHARS:]
        raise WorkFailed(Reason.SOURCE_INVALID, f"kustomize cannot build the overlay: {why}")
    return printed.stdout


def _close_env(context: JobContext) -> dict[str, str]:
    """Return an environment without git, which kustomize starts for bases, and without a network.

    `check_overlay` refuses both before; this is for whatever it should overlook.
    """
    env = context.build_env()
    nothing = context.workspace.folder / "no-programs"
    nothing.mkdir(mode=0o755, exist_ok=True)
    closed = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _NOWHERE)
    kept = {name: value for name, value in env.items() if name.upper() != "NO_PROXY"}
    return {**kept, **closed, "PATH": str(nothing), "GIT_ALLOW_PROTOCOL": "none"}
