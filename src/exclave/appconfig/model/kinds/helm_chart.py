"""Components of type `helm_chart`."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import (
    NEW,
    REQUIRED,
    Dead,
    Table,
    flag,
    table,
    tables,
    text,
    text_map,
)
from exclave.appconfig.model.kinds.components import WatchedComponent, limit_deploy
from exclave.appconfig.model.kinds.shared import DEPRECATED_ARRAYS, NAMESPACE, Repos


class HelmRepo(Table):
    """A chart in a chart repository."""

    repo_url: str = text(
        "The repository.", '"https://charts.example.com"', need=REQUIRED, format="url"
    )
    chart: str = text("The chart.", '"postgresql"', need=REQUIRED)
    version: str = text("Its version; absent: the newest.", '"15.2.0"')


class ValuesFile(Table):
    """A file of Helm values: one of the three keys."""

    contents: str = text(
        "YAML, or the file that holds it.", '"./values/api.yaml"', templated=True, reference=True
    )
    path: str = text(
        "A file, from the app directory.",
        '"components/values/api.yaml"',
        templated=True,
        path=True,
    )
    source: str = text(
        "A file, from the app directory.",
        '"components/values/api.yaml"',
        templated=True,
        path=True,
        deprecated="Write `contents` instead.",
    )


class HelmChart(WatchedComponent, Repos):
    """A Helm chart from a repository or a chart repository."""

    TYPE: ClassVar[str] = "helm_chart"
    OVERRIDE: ClassVar[str] = "helm_values"
    DEAD: ClassVar[Mapping[str, Dead]] = {
        **DEPRECATED_ARRAYS,
        "value": Dead("Write the values as a table: [values] with name = value.", error=True),
        "timeout": Dead("Write `deploy_timeout` instead."),
    }

    deploy_timeout: str = limit_deploy("30m")
    chart_name: str = text(
        "The name of the release: a DNS label of 5 to 53 characters.",
        '"my-api"',
        need=REQUIRED,
        templated=True,
        format="release",
    )
    helm_repo: HelmRepo | None = table(HelmRepo, "A chart repository, instead of a git one.")
    namespace: str = text("Made if it does not exist.", '"app"', default=NAMESPACE, templated=True)
    storage_driver: str = text(
        "Where Helm keeps the release; absent: where it already is, else in Secrets.",
        '"secret"',
        choices=("configmap", "secret", "nuon"),
        templated=True,
    )
    values: Mapping[str, str] = text_map(
        "Values like `helm --set`: dotted keys nest, `true` and `3` lose their quotes.",
        '{ "image.tag" = "{{.nuon.components.image.outputs.image.tag}}" }',
        templated=True,
        flatten=True,
    )
    values_file: tuple[ValuesFile, ...] = tables(
        ValuesFile,
        "Files of values: the earlier wins, unlike `helm -f`; `values` win over all.",
    )
    take_ownership: bool = flag("Adopt what already exists.")
    skip_crds: bool = flag("Leave the chart's CRDs out.", since=NEW)
    crds: str = text(
        "What happens to the chart's CRDs: those that exist stay as they are, unless `upgrade`.",
        choices=("create", "upgrade", "skip"),
        default="create",
        since=NEW,
    )
