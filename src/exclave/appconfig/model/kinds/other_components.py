"""Components of types `pulumi`, `docker_build` and `job`."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import NEW, REQUIRED, Dead, text, text_map, texts
from exclave.appconfig.model.kinds.components import UNPLANNED, Component, PlannedComponent
from exclave.appconfig.model.kinds.shared import DEPRECATED_ARRAYS, NAMESPACE, Repos


class Pulumi(PlannedComponent, Repos):
    """A Pulumi program from a repository."""

    TYPE: ClassVar[str] = "pulumi"
    UNSUPPORTED: ClassVar[str] = (
        "Runners have no language runtimes, and a Pulumi preview is not bound to what is applied."
        " Write it as a terraform_module; an app that has such a component cannot be installed."
    )

    runtime: str = text(
        "The language of the program.", choices=("go", "nodejs", "python"), need=REQUIRED, since=NEW
    )
    pulumi_version: str = text("Absent: the latest.", '"3.140.0"', since=NEW, format="version")
    config: Mapping[str, str] = text_map(
        "Pulumi configuration; keys are `namespace:key`.",
        '{ "gcp:project" = "acme" }',
        since=NEW,
        templated=True,
        format="pulumi_keys",
    )
    env_vars: Mapping[str, str] = text_map(
        "Environment of Pulumi.", '{ PULUMI_LOG = "1" }', since=NEW, templated=True
    )


class DockerBuild(Component, Repos):
    """An image that is built from a Dockerfile in a repository."""

    TYPE: ClassVar[str] = "docker_build"
    DEAD: ClassVar[Mapping[str, Dead]] = UNPLANNED

    dockerfile: str = text("The file, from `directory`.", '"Dockerfile"', need=REQUIRED)
    env_vars: Mapping[str, str] = text_map(
        "Build arguments, under the name that older apps use.", '{ CGO_ENABLED = "0" }'
    )
    build_args: Mapping[str, str] = text_map(
        "Build arguments: what `ARG` of the Dockerfile declares.", '{ VERSION = "1.2.0" }'
    )
    target: str = text("The stage to build; absent: the last one.", '"release"')
    context: str = text(
        "The folder that `COPY` reads from, below `directory`.", '"server"', default=".", since=NEW
    )
    platforms: tuple[str, ...] = texts(
        "Build for these; absent: for that of the build runner. Several make an index.",
        '["linux/amd64", "linux/arm64"]',
        since=NEW,
    )
    secrets: tuple[str, ...] = texts(
        "Names of secrets of the build runner, for `RUN --mount=type=secret,id=NAME`.",
        '["npm_token"]',
        since=NEW,
    )


class Job(PlannedComponent):
    """A container that runs once for each change of this definition, as a Kubernetes Job."""

    TYPE: ClassVar[str] = "job"
    DEPRECATED: ClassVar[str] = "Write an action, or a kubernetes_manifest with a Job."
    DEAD: ClassVar[Mapping[str, Dead]] = {
        **DEPRECATED_ARRAYS,
        "health": Dead("A job has ended when its deploy has; the key has no effect."),
    }

    namespace: str = text(
        "Made if it does not exist.", '"app"', default=NAMESPACE, since=NEW, templated=True
    )
    image_url: str = text(
        "The image.", '"docker.io/library/busybox"', need=REQUIRED, templated=True
    )
    tag: str = text("Its tag.", '"1.36"', need=REQUIRED, templated=True)
    cmd: tuple[str, ...] = texts("The program.", '["sh"]', templated=True)
    args: tuple[str, ...] = texts("Its arguments.", '["-c", "true"]', templated=True)
    env_vars: Mapping[str, str] = text_map(
        "Environment of the container.", '{ MODE = "once" }', templated=True
    )
