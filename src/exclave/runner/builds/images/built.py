"""The recipe of `docker_build`: an image from a Dockerfile, built by buildah without a daemon."""

import asyncio
import json
import posixpath
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

from exclave.base.json_values import Json, JsonObject
from exclave.client.oci.client import PushedManifest
from exclave.client.oci.repository import OciRepository
from exclave.runner.builds.charts.downloads import make_login
from exclave.runner.builds.image_policies import KnownImage, check_image
from exclave.runner.builds.images.dockerfile import (
    explain_failure,
    list_base_images,
    read_instructions,
)
from exclave.runner.builds.recipe import BuildWork, BuiltArtifact
from exclave.runner.builds.sources import FetchedFolder, fetch_folder
from exclave.runner.commands import buildah
from exclave.runner.images.graph import read_graph
from exclave.runner.images.layout import push_layout
from exclave.runner.images.metadata import read_metadata
from exclave.runner.images.references import parse_image
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.wire.jobs import Reason
from exclave.wire.plans import PolicyFinding
from exclave.wire.specs import DockerOptions

_MOST_DOCKERFILE: Final = 1 << 20
_POLICY: Final = {"default": [{"type": "insecureAcceptAnything"}]}
"""Images are verified by digest and policies of ours, not by signature rules of the machine."""
_REGISTRIES: Final = """unqualified-search-registries = ["docker.io"]
short-name-mode = "disabled"
"""
_STORAGE: Final = '[storage]\ndriver = "vfs"\n'
_LOOPBACK: Final = """
[[registry]]
location = "{host}"
insecure = true
"""
_LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost")


async def build_image(work: BuildWork) -> BuiltArtifact:
    """Fetch the context, build it, push the image by its digest, and evaluate the policies."""
    options = work.spec.docker
    if options is None:
        raise WorkFailed(Reason.SOURCE_INVALID, "the job does not say how the image is built")
    fetched = await fetch_folder(work)
    text = await asyncio.to_thread(_read_dockerfile, work, fetched.folder, options.dockerfile)
    instructions = read_instructions(text)
    bases = list_base_images(instructions)
    work.context.log.system(f"base images: {', '.join(bases) or 'none'}")
    work.begin("build")
    layout = await _build(work, fetched, options, text, bases)
    work.begin("push")
    target = work.registry.open_repository(work.spec.repository)
    pushed, size = await work.context.guard(push_layout(layout, target), name="the push")
    known = KnownImage(work.spec.repository, "", pushed.digest, text, bases)
    findings = await _check(work, known, target, pushed)
    return BuiltArtifact(pushed, "", size, commit=fetched.commit, findings=findings)


async def _build(
    work: BuildWork, fetched: FetchedFolder, options: DockerOptions, text: str, bases: list[str]
) -> Path:
    """Build the image and return the folder of its layout."""
    context = work.context
    program = _find_program(work)
    stores, layout = context.workspace.work / "stores", context.workspace.work / "layout"
    await asyncio.to_thread(_prepare, work, stores, bases)
    env = _make_env(work, stores)
    if options.build_args:
        context.log.system(f"build args: {', '.join(sorted(options.build_args))}")
    argv = buildah.build(
        program,
        stores,
        fetched.folder,
        dockerfile=fetched.folder / options.dockerfile,
        args=options.build_args,
        target=options.target,
    )
    built = await context.capture(
        Command(argv, env, fetched.folder), name="the build of the image", quiet=False
    )
    if built.code != 0:
        output = f"{built.stdout}\n{built.stderr}"
        raise WorkFailed(Reason.EXIT_CODE, explain_failure(text, options.dockerfile, output))
    export = Command(buildah.export(program, stores, layout), env, fetched.folder)
    written = await context.capture(export, name="the export of the image")
    if written.code != 0:
        _refuse(f"buildah could not write the image: {written.stderr.strip()[-500:]}")
    return layout


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


def _prepare(work: BuildWork, stores: Path, bases: list[str]) -> None:
    """Write the settings of buildah: nothing of the machine's own configuration is used."""
    hosts = {base.partition("/")[0] for base in bases}
    local = [host for host in sorted(hosts) if host.partition(":")[0] in _LOOPBACK_HOSTS]
    registries = _REGISTRIES + "".join(_LOOPBACK.format(host=host) for host in local)
    with work.context.workspace.touch():
        stores.mkdir(mode=0o700)
    work.context.workspace.write(stores / "policy.json", json.dumps(_POLICY).encode())
    work.context.workspace.write(stores / "registries.conf", registries.encode())
    work.context.workspace.write(stores / "storage.conf", _STORAGE.encode())
    work.context.workspace.write(
        stores / "auth.json", json.dumps(_list_logins(work, bases)).encode()
    )


def _list_logins(work: BuildWork, bases: list[str]) -> JsonObject:
    """Return the logins for base images that the build runner holds, as buildah reads them."""
    auths: dict[str, Json] = {}
    for base in bases:
        try:
            name = parse_image(base)
        except WorkFailed:
            continue  # It has a build argument in it, so it is known only to buildah.
        charts = work.tools.charts
        login = make_login(charts.find_credential(work.context, f"{name.url}/{name.path}"))
        if login is not None:
            auths[name.host] = {"auth": login.write_basic().removeprefix("Basic ")}
    return {"auths": auths}


def _make_env(work: BuildWork, stores: Path) -> Mapping[str, str]:
    folder = str(stores)
    return work.context.build_env(
        {
            "BUILDAH_ISOLATION": "chroot",
            "CONTAINERS_REGISTRIES_CONF": f"{folder}/registries.conf",
            "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf",
            "REGISTRY_AUTH_FILE": f"{folder}/auth.json",
            "XDG_RUNTIME_DIR": folder,
            "TMPDIR": folder,
        }
    )


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SOURCE_INVALID, message)
