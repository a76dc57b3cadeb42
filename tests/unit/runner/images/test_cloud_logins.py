"""Logins at the registries of clouds, by exchanges that are recorded and played over real HTTP."""

import base64
from datetime import UTC, datetime
from urllib.parse import parse_qs

import pytest

from exclave.base.secrets import Secret
from exclave.runner.cloud.sigv4 import AwsKeys, SignedFor, sign_post
from exclave.runner.images.cloud_logins import CloudLogins, find_role, name_ecr_api
from exclave.runner.images.references import ImageName, parse_image
from exclave.runner.kube.access.aks import AzureEndpoints
from exclave.runner.kube.access.clusters import Clouds
from exclave.runner.kube.access.eks import AwsEndpoints
from exclave.runner.kube.access.gke import GcpEndpoints
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from tests.support.clouds import AWS_MACHINE
from tests.support.scripted_api import Reply, ScriptedApi, say

AT = datetime(2026, 11, 17, 12, 30, 45, tzinfo=UTC)
NAME = ImageName("registry.example.com", "app")
GOOGLE = "/computeMetadata/v1/instance/service-accounts/default/token"
ASSUMED = b"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleResult><Credentials><AccessKeyId>ASSUMED</AccessKeyId>
<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken></Credentials></AssumeRoleResult>
</AssumeRoleResponse>"""
AZURE = "/metadata/identity/oauth2/token"


class Frozen:
    def now(self) -> datetime:
        return AT

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        del seconds


def point_at(url: str) -> CloudLogins:
    clouds = Clouds(AwsEndpoints(url, url), GcpEndpoints(url, url), AzureEndpoints(url))
    return CloudLogins(clouds, ecr=url)


def test_a_call_of_ecr_is_signed_as_botocore_signs_it() -> None:
    # Recorded: botocore.auth.SigV4Auth(keys, "ecr", "eu-west-1").add_auth of the same request.
    keys = AwsKeys(
        "AKIDEXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), Secret("tok/en+==")
    )

    headers = sign_post(
        keys,
        SignedFor("ecr", "eu-west-1", AT),
        "api.ecr.eu-west-1.amazonaws.com",
        b"{}",
        "application/x-amz-json-1.1",
        {"x-amz-target": "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"},
    )

    assert (
        headers["authorization"].rpartition("Signature=")[2]
        == "5ce6f2e6cc952a28f9fc3ca321f17f7eb9dfd149f797edee5fdb3c06f18e2a7a"
    )


async def test_ecr_gives_a_password_for_the_role_of_the_machine() -> None:
    token = base64.b64encode(b"AWS:ecr-password").decode()
    reply = say({"authorizationData": [{"authorizationToken": token}]})
    masked: list[Secret] = []
    async with ScriptedApi({**AWS_MACHINE, "/": [reply]}) as cloud:
        login = await point_at(cloud.url).log_in(
            "ecr", NAME, Frozen(), masked.append, region="eu-west-1"
        )

    assert (login.username, login.password.reveal()) == ("AWS", "ecr-password")
    assert [secret.reveal() for secret in masked] == ["ecr-password"]
    asked = cloud.seen[-1]
    assert asked.headers["x-amz-target"].endswith(".GetAuthorizationToken")
    assert "Credential=AK/20261117/eu-west-1/ecr/aws4_request" in asked.headers["authorization"]


async def test_ecr_is_asked_as_the_role_that_is_named() -> None:
    token = base64.b64encode(b"AWS:of-the-role").decode()
    replies = [Reply(200, ASSUMED), say({"authorizationData": [{"authorizationToken": token}]})]
    role = "arn:aws:iam::123456789012:role/read"
    async with ScriptedApi({**AWS_MACHINE, "/": replies}) as cloud:
        login = await point_at(cloud.url).log_in(
            "ecr", NAME, Frozen(), lambda _: None, region="eu-west-1", role=role
        )

    assert login.password.reveal() == "of-the-role"
    assert parse_qs(cloud.seen[-2].body.decode())["RoleArn"] == [role]
    asked = cloud.seen[-1].headers
    assert "Credential=ASSUMED/20261117/eu-west-1/ecr/aws4_request" in asked["authorization"]
    assert asked["x-amz-security-token"] == "t"


def test_ecr_in_china_has_another_domain() -> None:
    assert name_ecr_api("eu-west-1") == "api.ecr.eu-west-1.amazonaws.com"
    assert name_ecr_api("cn-north-1") == "api.ecr.cn-north-1.amazonaws.com.cn"


async def test_gar_is_asked_as_the_account_that_is_named() -> None:
    account = "read@acme.iam.gserviceaccount.com"
    path = f"/v1/projects/-/serviceAccounts/{account}:generateAccessToken"
    replies = {
        GOOGLE: [say({"access_token": "ya29.machine", "expires_in": 3600})],
        path: [say({"accessToken": "ya29.account", "expireTime": "2026-11-17T13:30:45Z"})],
    }
    async with ScriptedApi(replies) as cloud:
        login = await point_at(cloud.url).log_in(
            "gar", NAME, Frozen(), lambda _: None, role=account
        )

    assert login.password.reveal() == "ya29.account"
    assert cloud.seen[-1].headers["authorization"] == "Bearer ya29.machine"


async def test_gar_takes_the_token_of_the_machine() -> None:
    replies = {GOOGLE: [say({"access_token": "ya29.x", "expires_in": 3600})]}
    async with ScriptedApi(replies) as cloud:
        login = await point_at(cloud.url).log_in("gar", NAME, Frozen(), lambda _: None)

    assert (login.username, login.password.reveal()) == ("oauth2accesstoken", "ya29.x")


async def test_acr_exchanges_a_token_of_azure_for_one_of_its_own() -> None:
    expires = str(int(AT.timestamp()) + 3600)
    async with ScriptedApi(
        {
            AZURE: [say({"access_token": "aad", "expires_on": expires})],
            "/oauth2/exchange": [say({"refresh_token": "acr-refresh"})],
        }
    ) as cloud:
        name = parse_image(f"{cloud.url.removeprefix('http://')}/app")
        login = await point_at(cloud.url).log_in(
            "acr", name, Frozen(), lambda _: None, role="client-1"
        )

    assert login.username == "00000000-0000-0000-0000-000000000000"
    assert login.password.reveal() == "acr-refresh"
    assert "client_id=client-1" in cloud.seen[0].target
    assert parse_qs(cloud.seen[1].body.decode()) == {
        "grant_type": ["access_token"],
        "service": [name.host],
        "access_token": ["aad"],
    }


async def test_a_cloud_that_refuses_is_named_with_its_words() -> None:
    async with ScriptedApi({**AWS_MACHINE, "/": [Reply(400, b"AccessDeniedException")]}) as cloud:
        with pytest.raises(WorkFailed) as caught:
            await point_at(cloud.url).log_in(
                "ecr", NAME, Frozen(), lambda _: None, region="eu-west-1"
            )

    assert caught.value.reason is Reason.ACCESS_DENIED
    assert "no login at registry.example.com: ECR answered 400" in caught.value.message


def test_a_role_is_one_of_the_stack() -> None:
    roles = {"maintenance": "arn:aws:iam::1:role/m"}

    assert find_role(roles, "maintenance") == "arn:aws:iam::1:role/m"
    assert find_role(roles, "") == ""
    with pytest.raises(WorkFailed, match="the Stack has no role `admin`"):
        find_role(roles, "admin")
