"""Clusters that jobs work on: which one, and where the runner gets its access from."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from exclave.base import job_limits
from exclave.wire.model import Name, Request

Endpoint = Annotated[
    str, StringConstraints(pattern=r"^https://[^\s/?#@]+(/[^\s?#]*)?$", max_length=1000)
]
"""The address of an API server; always TLS."""
CertificateData = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9+/=\s]*$", max_length=256 << 10)
]
"""The certificate authority of an API server: PEM in base64, as in a kubeconfig."""
RoleName = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
"""A role by the name that the app gives it; the runner finds whose it is in the Stack's outputs."""


class KubeconfigCluster(Request):
    """A kubeconfig that the customer named when they ran the Stack."""

    type: Literal["kubeconfig"] = "kubeconfig"
    name: Name = "default"


class InCluster(Request):
    """The cluster that the runner itself runs in, by the account of its pod."""

    type: Literal["in_cluster"] = "in_cluster"


class EksCluster(Request):
    """A cluster of Amazon EKS; tokens are presigned by the runner."""

    type: Literal["eks"] = "eks"
    name: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$")]
    region: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d+$")]
    endpoint: Endpoint
    ca: CertificateData
    role: RoleName = ""


class GkeCluster(Request):
    """A cluster of Google GKE; tokens are those of a service account."""

    type: Literal["gke"] = "gke"
    endpoint: Endpoint
    ca: CertificateData
    role: RoleName = ""


class AksCluster(Request):
    """A cluster of Azure AKS; tokens are those of a managed identity."""

    type: Literal["aks"] = "aks"
    endpoint: Endpoint
    ca: CertificateData
    server_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f-]{36}$")] = (
        "6dae42f8-4368-4678-94ff-3960e28e3630"
    )
    """The application that tokens are for; the same one for every AKS cluster."""
    role: RoleName = ""


class InlineCluster(Request):
    """A kubeconfig that is an output of a component: a placeholder, filled in by the runner."""

    type: Literal["inline"] = "inline"
    kubeconfig: Annotated[str, StringConstraints(max_length=job_limits.VALUE)]


ClusterRef = Annotated[
    KubeconfigCluster | InCluster | EksCluster | GkeCluster | AksCluster | InlineCluster,
    Field(discriminator="type"),
]
"""A cluster. Nothing in it is secret: what is, is a placeholder that the runner fills in."""
