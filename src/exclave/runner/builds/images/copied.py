"""The recipe of `container_image`: pin an image to its digest and copy it to the org's registry."""

from exclave.base.errors import Problem
from exclave.base.json_values import JsonObject
from exclave.client.oci.auth import Login
from exclave.client.oci.documents import PushedManifest
from exclave.client.oci.repository import OciRepository
from exclave.runner.builds.charts.downloads import make_login
from exclave.runner.builds.charts.versions import choose_version
from exclave.runner.builds.image_policies import KnownImage, check_image
from exclave.runner.builds.recipe import BuildWork, BuiltArtifact
from exclave.runner.images.copy import ImageCopy
from exclave.runner.images.graph import ImageNode, read_graph
from exclave.runner.images.metadata import read_metadata
from exclave.runner.images.references import ImageName, parse_image
from exclave.runner.images.registries import explain_refusal, open_image_repository
from exclave.runner.images.signatures import check_signed, read_key
from exclave.runner.outcomes import WorkFailed
from exclave.wire.images import ImageSource
from exclave.wire.jobs import Reason

_LOGIN = (
    "Check the name; for a private image, add a name and a password for this registry to the build"
    " runner's source-credentials.json, with a prefix like https://registry.example.com"
)
_SHOWN_TAGS = 8


async def copy_image(work: BuildWork) -> BuiltArtifact:
    """Resolve the tag of an image, verify its signature if asked to, copy the whole image."""
    source = work.spec.source
    if not isinstance(source, ImageSource):
        raise WorkFailed(Reason.SOURCE_INVALID, f"a `{source.type}` source is not an image")
    name = parse_image(source.image)
    await work.tools.charts.check_address(name.url)
    opened = open_image_repository(
        work.tools.charts.link,
        name,
        await _log_in(work, source, name),
        lambda token: work.context.log.hide([token]),
        reach=work.tools.charts.reach,
    )
    try:
        async with opened as repository:
            return await work.context.guard(_copy(work, source, name, repository), name="the copy")
    except Problem as problem:
        raise explain_refusal(problem, f"`{name.repository}`", advice=_LOGIN) from problem


async def _log_in(work: BuildWork, source: ImageSource, name: ImageName) -> Login | None:
    """Return the login that the build runner holds for the registry, or that its cloud gives it."""
    context = work.context
    credential = work.tools.charts.find_credential(context, f"{name.url}/{name.path}")
    if credential is not None or source.registry == "public":
        return make_login(credential)
    return await work.tools.clouds.log_in(
        source.registry,
        name,
        context.clock,
        lambda token: context.log.hide([token]),
        region=source.region,
        role=source.role,
    )


async def _copy(
    work: BuildWork, source: ImageSource, name: ImageName, repository: OciRepository
) -> BuiltArtifact:
    work.begin("resolve")
    tag, digest = await _resolve(work, source, name, repository)
    folder = work.context.job.folder / "blobs"
    folder.mkdir(mode=0o700)
    if source.verification:
        work.begin("verify")
        await check_signed(repository, digest, read_key(source.verification), folder)
        work.context.log.system(f"{digest} is signed with the key of [verification]")
    image = await read_graph(repository, digest)
    known = KnownImage(name.repository, tag, digest)
    findings = await check_image(work, known, lambda: read_metadata(repository, image, folder))
    work.begin("copy")
    await _transfer(work, repository, image)
    pushed = PushedManifest(image.digest, len(image.data), image.media_type)
    materials = (_describe(name, tag, digest),)
    return BuiltArtifact(pushed, "", image.size, materials=materials, findings=findings)


async def _resolve(
    work: BuildWork, source: ImageSource, name: ImageName, repository: OciRepository
) -> tuple[str, str]:
    """Return the tag that was chosen and the digest that it stands for now."""
    if name.digest:
        return "", name.digest
    tag = await _choose_tag(source, name, repository)
    digest = (await repository.fetch_manifest(tag)).digest
    work.context.log.system(f"{name.repository}:{tag} is {digest}")
    return tag, digest


async def _choose_tag(source: ImageSource, name: ImageName, repository: OciRepository) -> str:
    if not source.update_policy:
        return source.tag or name.tag or "latest"
    tags = await repository.list_tags()
    try:
        chosen = choose_version(tags, source.update_policy)
    except ValueError as error:
        raise WorkFailed(Reason.SOURCE_INVALID, str(error)) from error
    if chosen is None:
        shown = ", ".join(sorted(tags)[-_SHOWN_TAGS:]) or "none"
        message = f"`{name.repository}` has no tag for `{source.update_policy}`; it has {shown}"
        raise WorkFailed(Reason.IMAGE_UNAVAILABLE, message)
    return chosen


async def _transfer(work: BuildWork, repository: OciRepository, image: ImageNode) -> None:
    target = work.registry.open_repository(work.spec.repository)
    await ImageCopy(repository, target, work.context.log.system, work.context.clock).run(image)


def _describe(name: ImageName, tag: str, digest: str) -> JsonObject:
    """Return the image that was copied, as a resource descriptor of the provenance."""
    algorithm, _, value = digest.partition(":")
    suffix = f":{tag}" if tag else ""
    return {"uri": f"docker://{name.repository}{suffix}", "digest": {algorithm: value}}
