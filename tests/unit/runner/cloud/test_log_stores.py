"""What the log stores of the three clouds are sent."""

import json
from datetime import UTC, datetime

import pytest

from exclave.base.ids import SeededRandomness
from exclave.runner.cloud.accounts import Caller, CloudAccount
from exclave.runner.cloud.aws import AwsAccount, AwsAddresses
from exclave.runner.cloud.azure import AzureAccount
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.cloud.gcp import GcpAccount, GcpAddresses
from exclave.runner.cloud.imds import AwsMetadata, AzureMetadata, GcpMetadata
from exclave.runner.cloud.log_stores import LogLine, LogPlace, is_unfit, open_log_store
from tests.support.clouds import AWS_MACHINE
from tests.support.scripted_api import Reply, ScriptedApi, say
from tests.unit.runner.cloud.cloud_kit import FakeAccount, StepClock

AT = datetime(2026, 11, 17, 12, 30, 45, 250_000, tzinfo=UTC)
LINES = [LogLine(AT, '{"level":"warning","event":"a"}'), LogLine(AT, '{"event":"b"}')]
TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"
ENTRIES = "/v2/entries:write"
STREAM = "/dataCollectionRules/dcr-1/streams/Custom-Exclave"
EXISTS = say({"__type": "ResourceAlreadyExistsException"}, 400)
GONE = say({"__type": "ResourceNotFoundException", "message": "no stream"}, 400)


def make_caller() -> Caller:
    return Caller(StepClock(), SeededRandomness(1))


def make_aws(cloud: ScriptedApi) -> AwsAccount:
    places = AwsAddresses(logs=cloud.url)
    return AwsAccount("eu-west-1", make_caller(), AwsMetadata(cloud.url), places)


def name_place(reference: str) -> LogPlace:
    return LogPlace(reference, "acme", "i-1", "audit")


async def test_cloudwatch_gets_a_stream_per_machine_and_one_that_is_there_is_used() -> None:
    async with ScriptedApi({**AWS_MACHINE, "/": [EXISTS, Reply(200, b"{}")]}) as cloud:
        store = open_log_store(make_aws(cloud))
        await store.write(name_place("/exclave/acme"), LINES)
        await store.write(name_place("/exclave/acme"), LINES[:1])
        asked = [seen for seen in cloud.seen if seen.path == "/"]

    targets = [seen.headers["x-amz-target"].partition(".")[2] for seen in asked]
    assert targets == ["CreateLogStream", "PutLogEvents", "PutLogEvents"]
    assert json.loads(asked[1].body) == {
        "logGroupName": "/exclave/acme",
        "logStreamName": "i-1/audit",
        "logEvents": [{"timestamp": 1794918645250, "message": line.text} for line in LINES],
    }
    assert "/eu-west-1/logs/aws4_request" in asked[1].headers["authorization"]


async def test_a_stream_that_somebody_deleted_is_made_again() -> None:
    fine = Reply(200, b"{}")
    async with ScriptedApi({**AWS_MACHINE, "/": [fine, GONE, fine]}) as cloud:
        store = open_log_store(make_aws(cloud))
        with pytest.raises(CloudRefused, match="ResourceNotFound"):
            await store.write(name_place("/exclave/acme"), LINES)
        await store.write(name_place("/exclave/acme"), LINES)
        asked = [seen.headers["x-amz-target"] for seen in cloud.seen if seen.path == "/"]

    assert [target.partition(".")[2] for target in asked] == ["CreateLogStream", "PutLogEvents"] * 2


async def test_cloud_logging_gets_entries_that_count_once() -> None:
    machine = {TOKEN: [say({"access_token": "m", "expires_in": 3600})]}
    async with ScriptedApi({**machine, ENTRIES: [say({})]}) as cloud:
        places = GcpAddresses(cloud.url, cloud.url, cloud.url)
        account = GcpAccount(make_caller(), GcpMetadata(StepClock(), cloud.url), places)
        store = open_log_store(account)
        for _ in range(2):
            await store.write(name_place("projects/customer/logs/exclave/acme"), LINES)
        first, again = (json.loads(seen.body) for seen in cloud.seen if seen.path == ENTRIES)

    assert first == again
    assert first["logName"] == "projects/customer/logs/exclave%2Facme"
    assert first["labels"] == {"install": "acme", "machine": "i-1", "kind": "audit"}
    assert [entry["severity"] for entry in first["entries"]] == ["WARNING", "INFO"]
    assert first["entries"][0]["timestamp"] == "2026-11-17T12:30:45.250000Z"
    assert first["entries"][0]["jsonPayload"]["event"] == "a"
    assert len({entry["insertId"] for entry in first["entries"]}) == 2


async def test_azure_gets_rows_with_a_token_for_its_monitor() -> None:
    token = {"/metadata/identity/oauth2/token": [say({"access_token": "m", "expires_on": "1"})]}
    async with ScriptedApi({**token, STREAM: [Reply(204, b"")]}) as cloud:
        account = AzureAccount("id", make_caller(), AzureMetadata(StepClock(), cloud.url))
        await open_log_store(account).write(name_place(f"{cloud.url}{STREAM}"), LINES)
        asked_token, sent = cloud.seen

    assert "resource=https%3A%2F%2Fmonitor.azure.com" in asked_token.target
    assert sent.target.endswith("?api-version=2023-01-01")
    assert sent.headers["authorization"] == "Bearer m"
    assert json.loads(sent.body)[0] == {
        "TimeGenerated": "2026-11-17T12:30:45.250000Z",
        "Install": "acme",
        "Machine": "i-1",
        "Kind": "audit",
        "Line": LINES[0].text,
    }


@pytest.mark.parametrize(
    ("status", "message", "unfit"),
    [
        (400, "InvalidParameterException: not in order", True),
        (413, "too large", True),
        (400, "AccessDeniedException", False),
        (503, "busy", False),
        (0, "does not answer", False),
    ],
)
def test_lines_are_given_up_only_if_no_repetition_helps(
    status: int, message: str, unfit: bool
) -> None:
    assert is_unfit(CloudRefused(message, status=status)) is unfit


def test_an_account_without_a_log_store_is_a_bug() -> None:
    account: CloudAccount = FakeAccount(StepClock())
    with pytest.raises(TypeError):
        open_log_store(account)
