"""Tokens of Amazon EKS: a presigned question "who am I?", which EKS asks STS in our name."""

import base64
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree as ET

from exclave.base.clock import Clock
from exclave.base.secrets import Secret
from exclave.runner.cloud.exchange import ask_cloud
from exclave.runner.cloud.imds import METADATA, AwsMetadata
from exclave.runner.cloud.sigv4 import AwsKeys, SignedFor, presign, sign_post
from exclave.runner.kube.access.cloud_http import refuse_access
from exclave.runner.kube.access.tokens import Issue, IssuedToken
from exclave.runner.kube.api.errors import AccessRefused
from exclave.wire.kubernetes import EksCluster

_URL_S: Final = 60
"""How long the URL may be used; EKS accepts the token made of it for 15 minutes."""
_USABLE_S: Final = 600.0
_FORM: Final = "application/x-www-form-urlencoded; charset=utf-8"
_VERSION: Final = "2011-06-15"
_SESSION: Final = "exclave-runner"


@dataclass(frozen=True, slots=True)
class AwsEndpoints:
    """Where AWS is; tests have their own."""

    metadata: str = METADATA
    sts: str = ""
    """Of the region if it is empty."""


def issue_eks_token(
    cluster: EksCluster, role_arn: str, clock: Clock, endpoints: AwsEndpoints
) -> Issue:
    """Return an issuer of tokens for a cluster: as a role, or as the machine's own without one."""

    async def issue() -> IssuedToken:
        keys = await read_machine_keys(endpoints)
        if role_arn:
            keys = await assume_role(keys, role_arn, cluster.region, clock, endpoints)
        return IssuedToken(make_eks_token(keys, cluster, clock), _USABLE_S)

    return issue


def make_eks_token(keys: AwsKeys, cluster: EksCluster, clock: Clock) -> Secret:
    """Return the token of an identity for a cluster."""
    scope = SignedFor("sts", cluster.region, clock.now())
    query = {"Action": "GetCallerIdentity", "Version": _VERSION}
    headers = {"x-k8s-aws-id": cluster.name}
    url = presign(keys, scope, _name_sts(cluster.region), query, headers, expires_s=_URL_S)
    encoded = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
    return Secret(f"k8s-aws-v1.{encoded}")


async def read_machine_keys(endpoints: AwsEndpoints) -> AwsKeys:
    """Return the keys of the machine's role (instance metadata, version 2)."""
    with refuse_access():
        return (await AwsMetadata(endpoints.metadata).read_keys()).keys


async def assume_role(
    keys: AwsKeys, role_arn: str, region: str, clock: Clock, endpoints: AwsEndpoints
) -> AwsKeys:
    """Return the keys of a role that the machine's role may become."""
    url = endpoints.sts or f"https://{_name_sts(region)}"
    form = {
        "Action": "AssumeRole",
        "Version": _VERSION,
        "RoleArn": role_arn,
        "RoleSessionName": _SESSION,
        "DurationSeconds": "3600",
    }
    body = urlencode(form).encode()
    scope = SignedFor("sts", region, clock.now())
    headers = sign_post(keys, scope, urlsplit(url).netloc, body, _FORM)
    what = f"STS, asked for the role `{role_arn}`,"
    with refuse_access():
        reply = await ask_cloud("POST", f"{url}/", what=what, headers=headers, body=body)
    return _read_keys(reply)


def _read_keys(text: str) -> AwsKeys:
    if "<!" in text:
        raise AccessRefused("STS answered with a document type, which no answer of AWS has")
    try:
        tree = ET.fromstring(text)  # noqa: S314 - no document type, so no entities
    except ET.ParseError as error:
        raise AccessRefused("STS did not answer with XML") from error
    values = {element.tag.rpartition("}")[2]: element.text or "" for element in tree.iter()}
    if not values.get("SecretAccessKey"):
        raise AccessRefused("STS answered without keys")
    return AwsKeys(
        values.get("AccessKeyId", ""),
        Secret(values["SecretAccessKey"]),
        Secret(values.get("SessionToken", "")),
    )


def _name_sts(region: str) -> str:
    return f"sts.{region}.amazonaws.com" + (".cn" if region.startswith("cn-") else "")
