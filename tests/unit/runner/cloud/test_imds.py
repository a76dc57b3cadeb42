"""Metadata servers of the three clouds, faked over real sockets on the loopback."""

from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from exclave.base.json_values import Json
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.cloud.imds import AwsMetadata, AzureMetadata, GcpMetadata, Machine
from tests.support.clouds import AWS_MACHINE
from tests.support.scripted_api import Reply, ScriptedApi, say

AT = datetime(2026, 11, 17, 12, 30, 45, tzinfo=UTC)
ROLE = "/latest/meta-data/iam/security-credentials/runner-role"
IDENTITY = "/computeMetadata/v1/instance/service-accounts/default/identity"
TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"


class Frozen:
    def now(self) -> datetime:
        return AT

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        del seconds


async def test_aws_is_asked_in_a_session_only() -> None:
    keys = {
        "AccessKeyId": "AK",
        "SecretAccessKey": "SK",
        "Token": "TOK",
        "Expiration": "2026-11-17T18:30:45Z",
    }
    async with ScriptedApi({**AWS_MACHINE, ROLE: [say(keys)]}) as cloud:
        read = await AwsMetadata(cloud.url).read_keys()

    assert read.keys.access_key == "AK"
    assert read.expires_at == datetime(2026, 11, 17, 18, 30, 45, tzinfo=UTC)
    assert cloud.seen[0].method == "PUT"
    assert [seen.headers.get("x-aws-ec2-metadata-token") for seen in cloud.seen[1:]] == [
        "session",
        "session",
    ]


async def test_a_machine_of_aws_says_what_it_is() -> None:
    document = {
        "instanceId": "i-0123456789abcdef0",
        "availabilityZone": "eu-west-1a",
        "imageId": "ami-1",
        "instanceType": "t3.medium",
        "accountId": "123456789012",
    }
    path = "/latest/dynamic/instance-identity/document"
    async with ScriptedApi({**AWS_MACHINE, path: [say(document)]}) as cloud:
        machine = await AwsMetadata(cloud.url).read_machine()

    assert machine == Machine("i-0123456789abcdef0", "eu-west-1a", "ami-1", "t3.medium")


async def test_what_is_not_there_is_empty_and_what_fails_is_a_refusal() -> None:
    script = {**AWS_MACHINE, "/latest/a": [Reply(404)], "/latest/b": [Reply(500, b"oh")]}
    async with ScriptedApi(script) as cloud:
        assert await AwsMetadata(cloud.url).read_text("a") == ""
        with pytest.raises(CloudRefused, match="answered 500: oh"):
            await AwsMetadata(cloud.url).read_text("b")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ({"/latest/api/token": [Reply(403)]}, "answered 403"),
        ({ROLE: [Reply(200, b"[]")]}, "not an object"),
        ({ROLE: [say({"AccessKeyId": "AK"})]}, "no keys"),
        ({ROLE: [Reply(200, b"x" * 300_000)]}, "too long"),
        ({ROLE: [Reply(drop=True)]}, "does not answer"),
        ({ROLE: [Reply(302, b"", {"Location": "http://127.0.0.1:1/"})]}, "answered 302"),
    ],
)
async def test_what_a_metadata_server_should_not_answer(
    script: dict[str, list[Reply]], words: str
) -> None:
    async with ScriptedApi({**AWS_MACHINE, **script}) as cloud:
        with pytest.raises(CloudRefused, match=words):
            await AwsMetadata(cloud.url).read_keys()


async def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async with ScriptedApi(AWS_MACHINE) as cloud:
        assert (await AwsMetadata(cloud.url).read_keys()).keys.access_key == "AK"


async def test_gcp_gives_a_token_and_a_statement_for_one_audience() -> None:
    script = {
        TOKEN: [say({"access_token": "ya29", "expires_in": 3600})],
        IDENTITY: [Reply(200, b"head.body.mark\n")],
    }
    async with ScriptedApi(script) as cloud:
        metadata = GcpMetadata(Frozen(), cloud.url)
        token = await metadata.read_token()
        statement = await metadata.read_identity("https://runners.example/attest/a_b-c")

    assert token.value.reveal() == "ya29"
    assert token.expires_at == datetime(2026, 11, 17, 13, 30, 45, tzinfo=UTC)
    assert statement.reveal() == "head.body.mark"
    assert all(seen.headers["metadata-flavor"] == "Google" for seen in cloud.seen)
    assert parse_qs(urlsplit(cloud.seen[-1].target).query) == {
        "audience": ["https://runners.example/attest/a_b-c"],
        "format": ["full"],
    }


async def test_a_machine_of_gcp_says_what_it_is() -> None:
    facts: Json = {
        "id": 42,
        "zone": "projects/1/zones/europe-west1-b",
        "image": "ubuntu",
        "machineType": "projects/1/machineTypes/e2-medium",
    }
    async with ScriptedApi({"/computeMetadata/v1/instance/": [say(facts)]}) as cloud:
        machine = await GcpMetadata(Frozen(), cloud.url).read_machine()

    assert machine == Machine("42", "europe-west1-b", "ubuntu", "e2-medium")


async def test_a_machine_of_gcp_without_an_account_says_so() -> None:
    async with ScriptedApi({IDENTITY: [Reply(404)]}) as cloud:
        with pytest.raises(CloudRefused, match="no service account"):
            await GcpMetadata(Frozen(), cloud.url).read_identity("x")


async def test_azure_gives_a_token_of_one_identity_and_a_document_with_a_nonce() -> None:
    ends = str(int(AT.timestamp()) + 3600)
    script = {
        "/metadata/identity/oauth2/token": [say({"access_token": "t", "expires_on": ends})],
        "/metadata/attested/document": [say({"encoding": "pkcs7", "signature": "QUJD"})],
    }
    async with ScriptedApi(script) as cloud:
        metadata = AzureMetadata(Frozen(), cloud.url)
        token = await metadata.read_token("api://x", "client")
        document = await metadata.read_document("n" * 32)
        with pytest.raises(CloudRefused, match="at most 32"):
            await metadata.read_document("n" * 33)

    assert token.expires_at == datetime(2026, 11, 17, 13, 30, 45, tzinfo=UTC)
    assert document == "QUJD"
    assert [seen.headers["metadata"] for seen in cloud.seen] == ["true", "true"]
    assert parse_qs(urlsplit(cloud.seen[0].target).query)["client_id"] == ["client"]
    assert parse_qs(urlsplit(cloud.seen[1].target).query)["nonce"] == ["n" * 32]


async def test_a_machine_of_azure_says_what_it_is() -> None:
    facts: Json = {
        "vmId": "vm-1",
        "zone": "1",
        "vmSize": "Standard_B2s",
        "storageProfile": {"imageReference": {"sku": "server"}},
    }
    async with ScriptedApi({"/metadata/instance/compute": [say(facts)]}) as cloud:
        machine = await AzureMetadata(Frozen(), cloud.url).read_machine()

    assert machine == Machine("vm-1", "1", "server", "Standard_B2s")


@pytest.mark.parametrize("reply", [{}, {"access_token": "t"}, {"expires_on": "99"}])
async def test_azure_without_a_token_is_a_refusal(reply: dict[str, str]) -> None:
    async with ScriptedApi({"/metadata/identity/oauth2/token": [say(reply)]}) as cloud:
        with pytest.raises(CloudRefused, match="without a token"):
            await AzureMetadata(Frozen(), cloud.url).read_token("x")
