"""Components of type `kubernetes_manifest`, plain or by kustomize."""

from typing import ClassVar

from exclave.appconfig.model.fields import NEW, REQUIRED, Table, flag, table, text, texts
from exclave.appconfig.model.kinds.components import WatchedComponent, limit_deploy
from exclave.appconfig.model.kinds.shared import Repos


class Kustomize(Table):
    """An overlay in the repository."""

    path: str = text("Its folder.", '"overlays/prod"', need=REQUIRED, since=NEW)
    patches: tuple[str, ...] = texts("Patch files.", '["patches/replicas.yaml"]', since=NEW)
    enable_helm: bool = flag("Allow Helm charts in the overlay.", since=NEW)
    load_restrictor: str = text(
        "`none`: files outside of the overlay, but in its source, may be read.",
        choices=("none", "rootOnly"),
        since=NEW,
    )


class KubernetesManifest(WatchedComponent, Repos):
    """Kubernetes objects: written out, or made by kustomize from a repository."""

    TYPE: ClassVar[str] = "kubernetes_manifest"

    deploy_timeout: str = limit_deploy("15m")
    manifest: str = text(
        "YAML of one or more objects, or the file that holds it.",
        '"./manifests/job.yaml"',
        templated=True,
        reference=True,
    )
    namespace: str = text(
        "Where objects without a namespace go; made if it does not exist.",
        '"app"',
        need=REQUIRED,
        templated=True,
    )
    kustomize: Kustomize | None = table(
        Kustomize, "An overlay, instead of `manifest`; needs a repository.", since=NEW
    )
