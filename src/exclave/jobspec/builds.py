"""The job that builds a part of a config version, and the key under which its result is reused."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from exclave.appconfig.model.formats import parse_duration
from exclave.appconfig.model.kinds.container_image import (
    AwsEcr,
    AzureAcr,
    ContainerImage,
    GcpGar,
)
from exclave.appconfig.model.kinds.helm_chart import HelmChart, HelmRepo
from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest
from exclave.appconfig.model.kinds.other_components import DockerBuild
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.shared import BUILD_TIMEOUT, HERE, Repo, Repos
from exclave.base.digests import digest_json
from exclave.base.errors import InvalidInput
from exclave.jobspec.facts import SourceFacts
from exclave.wire.builds import expand_repo
from exclave.wire.images import ImageSource
from exclave.wire.spec_fields import RegoPolicy
from exclave.wire.specs import (
    BuildSource,
    BuildSpec,
    ChartSource,
    DockerOptions,
    GitSource,
    KustomizeOptions,
    UploadedSource,
)

FORMAT = 1
"""The format of artifacts: a new one makes every part be built again."""


@dataclass(frozen=True, slots=True)
class BuildTarget:
    """A part to build, its source, and the key under which an equal build is reused."""

    part: str
    type: str
    """The type of the artifact."""
    source: BuildSource
    key: str
    timeout_s: float
    policies: tuple[RegoPolicy, ...] = ()
    """What the artifact has to pass before it can be used."""
    kustomize: KustomizeOptions | None = None
    docker: DockerOptions | None = None


def make_target(
    definition: Repos | ContainerImage,
    facts: SourceFacts,
    *,
    part: str,
    type_: str,
    timeout: str = BUILD_TIMEOUT,
) -> BuildTarget | None:
    """Return what is built for a part; None if its definition names no source."""
    if isinstance(definition, ContainerImage):
        image = make_image_source(definition)
        key = digest_json({"format": FORMAT, "type": type_, "source": image.model_dump()})
        return BuildTarget(part, type_, image, key, _read_timeout(timeout))
    chart = definition.helm_repo if isinstance(definition, HelmChart) else None
    if chart is not None:
        source, identity = _make_chart_source(chart)
    elif definition.repo is not None:
        is_connected = definition.connected_repo is not None
        source, identity = _make_folder_source(definition.repo, facts, is_connected=is_connected)
    else:
        return None
    options = _read_options(definition)
    described: dict[str, object] = {}
    if options is not None:
        # An overlay may refer to folders beside its own: of an upload, everything counts.
        described = {"kustomize": options.model_dump(), "upload": _find_upload(source)}
    docker = _read_docker(definition)
    if docker is not None:
        described = {"docker": docker.model_dump()}
    key = digest_json({"format": FORMAT, "type": type_, "source": identity, **described})
    return BuildTarget(
        part, type_, source, key, _read_timeout(timeout), kustomize=options, docker=docker
    )


def make_image_source(definition: ContainerImage) -> ImageSource:
    """Return the image that a component names, and who may read it."""
    tables = (definition.public, definition.aws_ecr, definition.gcp_gar, definition.azure_acr)
    table = next((table for table in tables if table is not None), None)
    if table is None:
        raise InvalidInput(
            "a container_image needs a source",
            hint="Write one of the tables public, aws_ecr, gcp_gar and azure_acr.",
        )
    registry: Literal["public", "ecr", "gar", "acr"] = "public"
    region = role = ""
    match table:
        case AwsEcr():
            registry, region, role = "ecr", table.region, table.iam_role_arn
        case GcpGar():
            registry, region, role = "gar", table.region, table.service_account_email
        case AzureAcr():
            registry, role = "acr", table.client_id
        case _:
            pass
    return ImageSource(
        image=table.image_url,
        tag=table.tag,
        update_policy=table.update_policy,
        registry=registry,
        region=region,
        role=role,
        verification=dict(definition.verification),
    )


def _read_timeout(timeout: str) -> float:
    # A timeout that is a template cannot be read before there is an install.
    return parse_duration(timeout) or parse_duration(BUILD_TIMEOUT) or 0.0


def _find_upload(source: BuildSource) -> str:
    return source.archive_digest if isinstance(source, UploadedSource) else ""


def _read_options(definition: Repos) -> KustomizeOptions | None:
    """Return how an overlay is built; None if the part is something else."""
    overlay = definition.kustomize if isinstance(definition, KubernetesManifest) else None
    if overlay is None:
        return None
    return KustomizeOptions(
        path=posixpath.normpath(overlay.path),
        patches=list(overlay.patches),
        enable_helm=overlay.enable_helm,
        restrict=overlay.load_restrictor != "none",
    )


def _read_docker(definition: Repos) -> DockerOptions | None:
    """Return how an image is built; None if the part is something else."""
    if not isinstance(definition, DockerBuild):
        return None
    return DockerOptions(
        dockerfile=posixpath.normpath(definition.dockerfile),
        build_args={**definition.env_vars, **definition.build_args},
        target=definition.target,
        context=posixpath.normpath(definition.context or "."),
        platforms=sorted(set(definition.platforms)),
        secrets=sorted(set(definition.secrets)),
    )


def _make_folder_source(
    repo: Repo, facts: SourceFacts, *, is_connected: bool
) -> tuple[BuildSource, Mapping[str, str]]:
    """Return a folder as a source, and what tells it from others."""
    directory = posixpath.normpath(repo.directory or ".")
    if repo.repo == HERE:
        source = UploadedSource(
            config_id=facts.config_id, archive_digest=facts.archive_digest, directory=directory
        )
        # A folder that was not there when the app was synced: the build will say so.
        return source, {"folder": facts.folders.get(directory, facts.archive_digest)}
    url, ref = expand_repo(repo.repo), repo.branch or "HEAD"
    identity = {"url": url, "ref": ref, "directory": directory}
    return GitSource(url=url, ref=ref, directory=directory, connected=is_connected), identity


def _make_chart_source(chart: HelmRepo) -> tuple[BuildSource, Mapping[str, str]]:
    """Return a chart of a chart repository as a source, and what tells it from others."""
    identity = {"url": chart.repo_url, "chart": chart.chart, "version": chart.version}
    return ChartSource(url=chart.repo_url, chart=chart.chart, version=chart.version), identity


def add_policies(target: BuildTarget, policies: Sequence[Policy]) -> BuildTarget:
    """Return the target with the policies of its artifact; other policies make it another build.

    There is no install yet, so that templates in them cannot be rendered: they are Rego as it is.
    """
    if not policies:
        return target
    wanted = tuple(RegoPolicy(name=policy.name, rego=policy.contents) for policy in policies)
    texts = [[policy.name, policy.rego] for policy in wanted]
    key = digest_json({"target": target.key, "policies": texts})
    return replace(target, key=key, policies=wanted)


def make_build_job(target: BuildTarget, *, build_id: str, repository: str) -> BuildSpec:
    """Return the job that builds a part and pushes the artifact to a repository."""
    return BuildSpec(
        build_id=build_id,
        part=target.part,
        type=target.type,
        source=target.source,
        repository=repository,
        policies=list(target.policies),
        kustomize=target.kustomize,
        docker=target.docker,
        timeout_s=target.timeout_s,
    )
