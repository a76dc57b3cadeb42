"""The jobs of components of types `container_image` and `docker_build`: copies of images."""

import re

from exclave.appconfig.model.kinds.container_image import ContainerImage
from exclave.appconfig.model.kinds.other_components import DockerBuild
from exclave.base.image_names import expand_image
from exclave.base.json_values import JsonObject, object_or_empty, text_or_empty
from exclave.domain.intents import SyncPart
from exclave.domain.lanes import slug
from exclave.domain.stacks import Cloud
from exclave.jobspec.facts import ImageFacts
from exclave.jobspec.texts import read_timeout
from exclave.wire.images import ImageSpec, PinnedImage, RegistryRef

_ECR_REGION = re.compile(r"\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com")
_TAG_DIGITS = 40


def make_image_job(
    definition: ContainerImage | DockerBuild, facts: ImageFacts, intent: SyncPart
) -> ImageSpec:
    """Return the job that copies an image into the install's registry, or removes its tag."""
    where = f"{intent.part}: deploy_timeout"
    return ImageSpec(
        destroy=intent.destroy,
        artifact=facts.artifact,
        target=find_registry(facts, intent.component),
        tag=name_tag(facts.artifact.digest),
        source=_find_public_source(definition),
        timeout_s=read_timeout(facts.render(definition.deploy_timeout, where)),
    )


def name_tag(digest: str) -> str:
    """Return the tag of an image: the same for the same content, so that no pod restarts for it.

    Tags of the form `sha256-…` belong to referrers.
    """
    return "x" + digest.partition(":")[2][:_TAG_DIGITS]


def find_registry(facts: ImageFacts, component: str) -> RegistryRef:
    """Return the registry of the install that the sandbox made; else the Stack may name one."""
    folder, role = slug(component), facts.role
    match facts.target:
        case Cloud.AWS:
            url = _find_url(facts.sandbox, "ecr", "repository_url")
            if url:
                region = _ECR_REGION.search(url)
                return RegistryRef(
                    type="ecr",
                    repository=url,
                    folder=folder,
                    region=region[1] if region else "",
                    role=role,
                )
        case Cloud.GCP:
            url = _find_url(facts.sandbox, "gar", "repository_url")
            if url:
                repository = f"{url}/{folder}"
                return RegistryRef(type="gar", repository=repository, folder=folder, role=role)
        case Cloud.AZURE:
            url = _find_url(facts.sandbox, "acr", "login_server")
            if url:
                # Names of repositories have no underscore at this place.
                repository = f"{url}/{facts.install_id.replace('_', '-')}/{folder}"
                return RegistryRef(type="acr", repository=repository, folder=folder, role=role)
        case Cloud.LOCAL:
            pass
    return RegistryRef(type="stack", folder=folder)


def read_pinned_image(outputs: JsonObject | None) -> PinnedImage | None:
    """Return the image that a component's outputs name by digest; None if they name none."""
    image = object_or_empty((outputs or {}).get("image"))
    repository, tag, digest = (
        text_or_empty(image.get(key)) for key in ("repository", "tag", "digest")
    )
    if not (repository and tag and digest):
        return None
    pull_secret = bool(image.get("pull_secret"))
    return PinnedImage(repository=repository, tag=tag, digest=digest, pull_secret=pull_secret)


def _find_public_source(definition: ContainerImage | DockerBuild) -> str:
    public = definition.public if isinstance(definition, ContainerImage) else None
    return "" if public is None else expand_image(public.image_url)


def _find_url(outputs: JsonObject, table: str, key: str) -> str:
    url = text_or_empty(object_or_empty(outputs.get(table)).get(key))
    return url.partition("://")[2].rstrip("/") if "://" in url else url.rstrip("/")
