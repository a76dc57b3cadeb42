"""Tokens of the clouds, from metadata servers that are faked over real HTTP."""

import base64
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from exclave.base.secrets import Secret
from exclave.runner.cloud.sigv4 import AwsKeys, SignedFor, sign_post
from exclave.runner.kube.access.aks import AzureEndpoints, issue_aks_token
from exclave.runner.kube.access.clusters import ClusterConnector
from exclave.runner.kube.access.eks import AwsEndpoints, issue_eks_token, make_eks_token
from exclave.runner.kube.access.gke import GcpEndpoints, issue_gke_token
from exclave.runner.kube.access.tokens import IssuedToken, IssuedTokens
from exclave.runner.kube.api.errors import AccessRefused
from exclave.wire.kubernetes import EksCluster, GkeCluster
from tests.support.scripted_api import Reply, ScriptedApi, say

CLUSTER = EksCluster(
    name="my-cluster", region="eu-west-1", endpoint="https://x.eks.example", ca="QQ=="
)
KEYS = AwsKeys(
    "AKIDEXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), Secret("tok/en+==")
)
AT = datetime(2026, 11, 17, 12, 30, 45, tzinfo=UTC)


class Frozen:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return AT

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def open_token(token: Secret) -> dict[str, list[str]]:
    text = token.reveal().removeprefix("k8s-aws-v1.")
    assert "=" not in text
    return parse_qs(urlsplit(base64.urlsafe_b64decode(text + "==").decode()).query)


def test_a_token_of_eks_is_the_one_that_botocore_makes() -> None:
    # Recorded: botocore.signers.RequestSigner("sts", "eu-west-1", ...).generate_presigned_url with
    # these keys, the header x-k8s-aws-id and a clock that stood at `AT`.
    query = open_token(make_eks_token(KEYS, CLUSTER, Frozen()))

    assert query == {
        "Action": ["GetCallerIdentity"],
        "Version": ["2011-06-15"],
        "X-Amz-Algorithm": ["AWS4-HMAC-SHA256"],
        "X-Amz-Credential": ["AKIDEXAMPLE/20261117/eu-west-1/sts/aws4_request"],
        "X-Amz-Date": ["20261117T123045Z"],
        "X-Amz-Expires": ["60"],
        "X-Amz-SignedHeaders": ["host;x-k8s-aws-id"],
        "X-Amz-Security-Token": ["tok/en+=="],
        "X-Amz-Signature": ["faeda9e8af81d9bcc086dd93fe06f74384184dc3db78566a56cf0f20b0909365"],
    }


def test_a_signed_call_is_the_one_that_botocore_signs() -> None:
    # Recorded: botocore.auth.SigV4Auth(keys, "sts", "eu-west-1").add_auth of the same request.
    headers = sign_post(
        KEYS,
        SignedFor("sts", "eu-west-1", AT),
        "sts.eu-west-1.amazonaws.com",
        b"Action=AssumeRole&Version=2011-06-15",
        "application/x-www-form-urlencoded; charset=utf-8",
    )

    assert (
        headers["authorization"].rpartition("Signature=")[2]
        == "146dad356672e3c97bc4071a3a2d18bcda87f320edc0713ccd43eb71a4d0b411"
    )


METADATA = "/latest/meta-data/iam/security-credentials"
MACHINE = {
    "/latest/api/token": [Reply(200, b"session")],
    f"{METADATA}/": [Reply(200, b"runner-role\n")],
    f"{METADATA}/runner-role": [
        say({"AccessKeyId": "AK", "SecretAccessKey": "SK", "Token": "TOK"})
    ],
}
ASSUMED = b"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<Credentials><AccessKeyId>ROLE</AccessKeyId><SecretAccessKey>S</SecretAccessKey>
<SessionToken>ST</SessionToken></Credentials></AssumeRoleResult></AssumeRoleResponse>"""


async def test_eks_uses_the_role_of_the_machine_or_becomes_another() -> None:
    async with ScriptedApi({**MACHINE, "/": [Reply(200, ASSUMED)]}) as cloud:
        endpoints = AwsEndpoints(cloud.url, cloud.url)
        own = await issue_eks_token(CLUSTER, "", Frozen(), endpoints)()
        other = await issue_eks_token(CLUSTER, "arn:aws:iam::1:role/x", Frozen(), endpoints)()

    assert open_token(own.value)["X-Amz-Credential"][0].startswith("AK/")
    assert open_token(other.value)["X-Amz-Credential"][0].startswith("ROLE/")
    assert other.usable_s == 600
    assert cloud.seen[0].headers["x-aws-ec2-metadata-token-ttl-seconds"] == "300"
    assert cloud.seen[1].headers["x-aws-ec2-metadata-token"] == "session"
    assert parse_qs(cloud.seen[-1].body.decode())["RoleArn"] == ["arn:aws:iam::1:role/x"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ({"/latest/api/token": [Reply(403)]}, "answered 403"),
        ({f"{METADATA}/": [Reply(200, b"")]}, "no role"),
        ({f"{METADATA}/runner-role": [Reply(200, b"no json")]}, "not valid JSON"),
        ({"/": [Reply(403, b"<Error>AccessDenied</Error>")]}, "AccessDenied"),
        ({"/": [Reply(200, b"<!DOCTYPE x><x/>")]}, "document type"),
        ({"/": [Reply(200, b"<x/>")]}, "without keys"),
    ],
)
async def test_what_aws_refuses_is_explained(script: dict[str, list[Reply]], words: str) -> None:
    async with ScriptedApi({**MACHINE, **script}) as cloud:
        endpoints = AwsEndpoints(cloud.url, cloud.url)
        with pytest.raises(AccessRefused, match=words):
            await issue_eks_token(CLUSTER, "arn:aws:iam::1:role/x", Frozen(), endpoints)()


async def test_gke_uses_the_account_of_the_machine_or_acts_for_another() -> None:
    account = "runner@p.iam.gserviceaccount.com"
    script = {
        "/computeMetadata/v1/instance/service-accounts/default/token": [
            say({"access_token": "machine", "expires_in": 3600})
        ],
        f"/v1/projects/-/serviceAccounts/{account}:generateAccessToken": [
            say({"accessToken": "other", "expireTime": "2026-11-17T13:00:45Z"})
        ],
    }
    async with ScriptedApi(script) as cloud:
        endpoints = GcpEndpoints(cloud.url, cloud.url)
        own = await issue_gke_token("", Frozen(), endpoints)()
        other = await issue_gke_token(account, Frozen(), endpoints)()

    assert (own.value.reveal(), own.usable_s) == ("machine", 3300)
    assert (other.value.reveal(), other.usable_s) == ("other", 1500)
    assert cloud.seen[0].headers["metadata-flavor"] == "Google"
    assert cloud.seen[-1].headers["authorization"] == "Bearer machine"


async def test_aks_uses_a_managed_identity() -> None:
    expires = str(int(AT.timestamp()) + 3600)
    reply = say({"access_token": "t", "expires_on": expires})
    async with ScriptedApi({"/metadata/identity/oauth2/token": [reply, say({})]}) as cloud:
        issue = issue_aks_token("server-id", "client", Frozen(), AzureEndpoints(cloud.url))
        token = await issue()
        with pytest.raises(AccessRefused, match="without a token"):
            await issue()

    query = parse_qs(urlsplit(cloud.seen[0].target).query)
    assert (token.value.reveal(), token.usable_s) == ("t", 3300)
    assert (query["resource"], query["client_id"]) == (["server-id"], ["client"])
    assert cloud.seen[0].headers["metadata"] == "true"


async def test_a_token_is_used_until_it_is_old_and_every_one_is_masked() -> None:
    clock = Frozen()
    issued: list[str] = []
    noted: list[Secret] = []

    async def issue() -> IssuedToken:
        issued.append(f"token-{len(issued)}")
        return IssuedToken(Secret(issued[-1]), 600)

    tokens = IssuedTokens(issue, clock, noted.append)
    first = [await tokens.read_headers() for _ in range(2)]
    clock.seconds = 601
    second = await tokens.read_headers()
    assert await tokens.renew()
    third = await tokens.read_headers()

    assert [*first, second, third] == [
        {"Authorization": f"Bearer token-{number}"} for number in (0, 0, 1, 2)
    ]
    assert [secret.reveal() for secret in noted] == issued


async def test_a_job_names_a_role_and_the_stack_knows_whose_it_is() -> None:
    cluster = GkeCluster(endpoint="https://x.example", ca="QQ==", role="deploy")
    connector = ClusterConnector(Frozen(), lambda _: None, roles={"other": "a"})

    with pytest.raises(AccessRefused, match="no role `deploy`"):
        await connector.connect(cluster)


async def test_a_cluster_of_a_cloud_needs_its_authority() -> None:
    cluster = GkeCluster(endpoint="https://x.example", ca="")
    connector = ClusterConnector(Frozen(), lambda _: None)

    with pytest.raises(AccessRefused, match="no certificate authority"):
        await connector.connect(cluster)
