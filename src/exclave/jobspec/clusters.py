"""Which cluster a job works on, by what the app's own infrastructure reports."""

import re

from exclave.base.json_values import Json, JsonObject, object_or_empty, text_or_empty
from exclave.domain.jobs import Reason
from exclave.domain.stacks import Cloud
from exclave.jobspec.errors import NotReady
from exclave.wire.kubernetes import (
    AksCluster,
    ClusterRef,
    EksCluster,
    GkeCluster,
    InlineCluster,
    KubeconfigCluster,
)

_PLACEHOLDER = "((exclave:"
_ARN_REGION = re.compile(r"^arn:[a-z-]+:eks:([a-z0-9-]+):")


def make_cluster(
    outputs: JsonObject, *, owner: str, context: str, target: Cloud, role: str
) -> ClusterRef:
    """Return the cluster that the outputs of its owner, the sandbox or a component, describe.

    On a customer's own machine the Stack names the cluster, unless the outputs have a kubeconfig.
    """
    output = outputs.get("cluster")
    cluster = object_or_empty(output)
    inline = _find_kubeconfig(output, cluster, outputs)
    if inline:
        return InlineCluster(kubeconfig=inline)
    if target is Cloud.LOCAL:
        return KubeconfigCluster(name=context or "default")
    if not cluster:
        raise _explain_missing(owner)
    return _make_cloud_cluster(cluster, owner, target, role)


def _find_kubeconfig(output: Json, cluster: JsonObject, outputs: JsonObject) -> str:
    """Return the placeholder of a kubeconfig; only placeholders are taken, never a credential.

    Of a sensitive output nothing is known but its name, so `cluster` itself may be a placeholder.
    """
    candidates = (output, cluster.get("kube_config"), outputs.get("kube_config"))
    texts = (text_or_empty(candidate) for candidate in candidates)
    return next((text for text in texts if text.startswith(_PLACEHOLDER)), "")


def _make_cloud_cluster(cluster: JsonObject, owner: str, target: Cloud, role: str) -> ClusterRef:
    endpoint = _read_endpoint(cluster, owner)
    ca = _read(cluster, owner, "certificate_authority_data", "ca_certificate")
    match target:
        case Cloud.AWS:
            name = _read(cluster, owner, "name", "cluster_name")
            region = _find_region(cluster, owner)
            return EksCluster(name=name, region=region, endpoint=endpoint, ca=ca, role=role)
        case Cloud.GCP:
            return GkeCluster(endpoint=endpoint, ca=ca, role=role)
        case Cloud.AZURE:
            return AksCluster(endpoint=endpoint, ca=ca, role=role)
        case Cloud.LOCAL:
            raise _explain_missing(owner)


def _read_endpoint(cluster: JsonObject, owner: str) -> str:
    """Return the address; GKE's own output is a bare host."""
    endpoint = _read(cluster, owner, "endpoint", "host")
    return endpoint if "://" in endpoint else f"https://{endpoint}"


def _find_region(cluster: JsonObject, owner: str) -> str:
    arn = _ARN_REGION.match(_find(cluster, "arn"))
    return arn[1] if arn else _read(cluster, owner, "region", "location")


def _find(cluster: JsonObject, *keys: str) -> str:
    texts = (cluster.get(key) for key in keys)
    return next((text for text in texts if isinstance(text, str) and text), "")


def _read(cluster: JsonObject, owner: str, *keys: str) -> str:
    text = _find(cluster, *keys)
    if not text:
        message = f"the output `cluster` of {owner} has no `{keys[0]}`"
        hint = "Add it to the module's output and deploy it again."
        raise NotReady(Reason.CLUSTER_UNREACHABLE, message, hint=hint)
    return text


def _explain_missing(owner: str) -> NotReady:
    return NotReady(
        Reason.CLUSTER_UNREACHABLE,
        f"{owner} has no output `cluster` and the Stack names no kubeconfig",
        hint="Give the module an output `cluster` with name, endpoint, certificate_authority_data.",
    )
