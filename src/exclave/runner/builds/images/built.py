"""The recipe of `docker_build`: an image from a Dockerfile, built by buildah without a daemon."""

import asyncio
import posixpath
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from exclave.base.json_values import JsonObject
from exclave.client.oci.client import PushedManifest
from exclave.client.oci.repository import OciRepository
from exclave.runner.builds.image_policies import KnownImage, check_image
from exclave.runner.builds.images.build_secrets import (
    forget_secrets,
    refuse_leaks,
    write_secrets,
)
from exclave.runner.builds.images.buildah_settings import build_buildah_env, write_settings
from exclave.runner.builds.images.canonical import make_canonical
from exclave.runner.builds.images.dockerfile import (
    explain_failure,
    list_base_images,
    read_instructions,
)
from exclave.runner.builds.images.emulation import list_foreign
from exclave.runner.builds.images.layer_cache import LayerCache, open_layer_cache, save_layers
from exclave.runner.builds.recipe import BuildWork, BuiltArtifact
from exclave.runner.builds.sbom.attach import attach_sbom
from exclave.runner.builds.sbom.images import read_image_contents
from exclave.runner.builds.source_checks import locate_folder
from exclave.runner.builds.sources import FetchedFolder, fetch_folder
from exclave.runner.commands import buildah
from exclave.runner.images.graph import read_graph
from exclave.runner.images.layout import push_layout
from exclave.runner.images.metadata import read_metadata
from exclave.runner.jobs.disk_watch import watch_disk
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.wire.jobs import Reason
from exclave.wire.plans import PolicyFinding
from exclave.wire.specs import DockerOptions

_MOST_DOCKERFILE: Final = 1 << 20
_MOST_OUTPUT: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class _Plan:
    """What buildah is told, beside the options of the job."""

    program: str
    dockerfile: Path
    context: Path
    text: str
    bases: list[str]
    secrets: Mapping[str, Path]


async def build_image(work: BuildWork) -> BuiltArtifact:
    """Fetch the context, build it, push the image by its digest, and evaluate the policies."""
    options = work.spec.docker
    if options is None:
        raise WorkFailed(Reason.SOURCE_INVALID, "the job does not say how the image is built")
    fetched = await fetch_folder(work)
    text = await asyncio.to_thread(_read_dockerfile, work, fetched.folder, options.dockerfile)
    instructions = read_instructions(text)
    bases = list_base_images(instructions, options.build_args)
    work.context.log.system(f"base images: {', '.join(bases) or 'none'}")
    work.begin("build")
    layout = await _build(work, fetched, options, text, bases)
    work.begin("push")
    target = work.registry.open_repository(work.spec.repository)
    pushed, size = await work.context.guard(push_layout(layout, target), name="the push")
    contents = await asyncio.to_thread(read_image_contents, work, layout)
    await attach_sbom(work, pushed, contents, "CONTAINER")
    known = KnownImage(work.spec.repository, "", pushed.digest, text, bases)
    findings = await _check(work, known, target, pushed)
    return BuiltArtifact(pushed, "", size, commit=fetched.commit, findings=findings)


async def _build(
    work: BuildWork, fetched: FetchedFolder, options: DockerOptions, text: str, bases: list[str]
) -> Path:
    """Build the image and return the folder of its layout."""
    context = work.context
    program = _find_program(work)
    copied = await asyncio.to_thread(_locate_context, work, fetched.folder, options.context)
    if options.build_args:
        context.log.system(f"build args: {', '.join(sorted(options.build_args))}")
    secrets = await write_secrets(work, options.secrets)
    plan = _Plan(program, fetched.folder / options.dockerfile, copied, text, bases, secrets)
    layout = context.workspace.work / "layout"
    async with open_layer_cache(work, options) as cache:
        try:
            stores = await _build_in_stores(work, options, plan, cache)
        finally:
            await forget_secrets(work, secrets)
        is_list = len(options.platforms) > 1
        export = buildah.export(program, stores, layout, is_list=is_list)
        env = build_buildah_env(work, stores)
        written = await context.capture(
            Command(export, env, copied, as_root=True), name="the export of the image"
        )
        if written.code != 0:
            _refuse(f"buildah could not write the image: {written.stderr.strip()[-500:]}")
        await asyncio.to_thread(_make_canonical, work, layout)
        await refuse_leaks(work, layout, options.secrets)
        if cache is not None:
            await context.guard(save_layers(work, cache, options.secrets), name="the layer cache")
    return layout


async def _build_in_stores(
    work: BuildWork, options: DockerOptions, plan: _Plan, cache: LayerCache | None
) -> Path:
    """Build and return the folder of the stores; without layers if these fill the disk."""
    try:
        return await _build_once(work, options, plan, cache)
    except WorkFailed as failed:
        if cache is None or failed.reason is not Reason.DISK_FULL:
            raise
        work.context.log.system("layers need more of the disk than there is: built without them")
    remove = ("rm", "-rf", str(work.context.workspace.work / "stores"))
    env = work.context.build_env()
    await work.context.run(Command(remove, env, plan.context, as_root=True), name="the clean-up")
    await asyncio.to_thread(cache.drop)
    return await _build_once(work, options, plan, None)


async def _build_once(
    work: BuildWork, options: DockerOptions, plan: _Plan, cache: LayerCache | None
) -> Path:
    stores = work.context.workspace.work / "stores"
    proxy = None if cache is None else cache.proxy
    await asyncio.to_thread(write_settings, work, stores, plan.bases, proxy)
    argv = buildah.build(
        plan.program,
        stores,
        plan.context,
        dockerfile=plan.dockerfile,
        args=options.build_args,
        target=options.target,
        platforms=options.platforms,
        secrets=plan.secrets,
        cache="" if proxy is None else proxy.repository,
    )
    env = build_buildah_env(work, stores)
    await _run_build(work, Command(argv, env, plan.context, as_root=True), plan.text, options)
    return stores


def _make_canonical(work: BuildWork, layout: Path) -> None:
    with work.context.workspace.touch():
        make_canonical(layout)


async def _run_build(work: BuildWork, command: Command, text: str, options: DockerOptions) -> None:
    """Run buildah until the image is built; explain a failure."""
    context = work.context
    build = context.capture(
        command, name="the build of the image", quiet=False, most_bytes=_MOST_OUTPUT
    )
    folder = context.workspace.folder
    built = await watch_disk(build, folder, context.keep_free_bytes, context.clock)
    if built.code != 0:
        output = f"{built.stdout}\n{built.stderr}"
        failure = explain_failure(text, options.dockerfile, output, list_foreign(options.platforms))
        raise WorkFailed(failure.reason, context.mask(failure.message))


def _find_program(work: BuildWork) -> str:
    """Return the path of buildah, which only the packages of a system bring."""
    program = shutil.which("buildah", path=work.context.children.path)
    if program is None:
        message = (
            "the build runner has no buildah on its PATH: install the package of your system;"
            " `exclave runner doctor` tells whether it can build"
        )
        raise WorkFailed(Reason.TOOL_MISSING, message)
    work.context.log.system(f"using buildah ({program})")
    return program


async def _check(
    work: BuildWork, known: KnownImage, target: OciRepository, pushed: PushedManifest
) -> tuple[PolicyFinding, ...]:
    folder = work.context.job.folder / "image"
    folder.mkdir(mode=0o700)

    async def read() -> JsonObject:
        return await read_metadata(target, await read_graph(target, pushed.digest), folder)

    return await check_image(work, known, read)


def _locate_context(work: BuildWork, folder: Path, name: str) -> Path:
    with work.context.workspace.touch():
        return locate_folder(folder, name)


def _read_dockerfile(work: BuildWork, folder: Path, name: str) -> str:
    path = posixpath.normpath(name)
    if path.startswith(("/", "..")):
        _refuse(f"`{name}` is not a file of the folder")
    with work.context.workspace.touch():
        file = folder / path
        if not file.resolve().is_relative_to(folder.resolve()):
            _refuse(f"`{name}` is a link that leads outside the folder")
        if not file.is_file():
            _refuse(f"there is no file `{name}` in the folder")
        with file.open("rb") as data:
            content = data.read(_MOST_DOCKERFILE + 1)
    if len(content) > _MOST_DOCKERFILE:
        _refuse(f"`{name}` has more than {_MOST_DOCKERFILE >> 20} MiB")
    try:
        return content.decode()
    except UnicodeDecodeError:
        _refuse(f"`{name}` is not UTF-8")


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SOURCE_INVALID, message)
