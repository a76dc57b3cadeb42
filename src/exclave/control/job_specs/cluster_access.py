"""Find the cluster that a job works on, and the images that the install has, in its state."""

from typing import cast

from exclave.appconfig.model.kinds.kubernetes_contexts import KubernetesContext
from exclave.base.json_values import Json, JsonObject, object_or_empty
from exclave.control.job_specs.context import Scope
from exclave.jobspec.clusters import make_cluster
from exclave.jobspec.images import read_pinned_image
from exclave.wire.images import PinnedImage
from exclave.wire.kubernetes import ClusterRef


def find_cluster(scope: Scope, context: str = "") -> ClusterRef:
    """Return the cluster of a context, or that of the sandbox if none is named.

    The runner reaches it as the role of the job.
    """
    if not context:
        outputs, owner = find_sandbox_outputs(scope), "the sandbox"
    else:
        name = scope.find_definition(KubernetesContext, context).component
        outputs, owner = _find_outputs(_list_components(scope).get(name)), f"component `{name}`"
    target, role = scope.row.target, scope.role_name
    return make_cluster(outputs, owner=owner, context=context, target=target, role=role)


def find_sandbox_outputs(scope: Scope) -> JsonObject:
    """Return what the sandbox reported; nothing before it is deployed."""
    return _find_outputs(_read_state(scope)["sandbox"])


def list_reported_clusters(scope: Scope) -> list[str]:
    """List the names of the kubeconfigs that the Stack reported."""
    outputs = _find_outputs(_read_state(scope).get("install_stack"))
    return list(object_or_empty(outputs.get("kubernetes")))


def list_images(scope: Scope) -> tuple[PinnedImage, ...]:
    """List the images of the install's components that are known by their digests."""
    outputs = (_find_outputs(entry) for entry in _list_components(scope).values())
    images = (read_pinned_image(table) for table in outputs)
    return tuple(image for image in images if image is not None)


def _list_components(scope: Scope) -> JsonObject:
    return object_or_empty(_read_state(scope)["components"])


def _read_state(scope: Scope) -> JsonObject:
    _, document = scope.state
    return cast("JsonObject", document)


def _find_outputs(entry: Json) -> JsonObject:
    return object_or_empty(object_or_empty(entry).get("outputs"))
