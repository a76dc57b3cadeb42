"""Whether a cloud ends its machine: what the three metadata servers say."""

import pytest

from exclave.base.clock import SystemClock
from exclave.runner.cloud.endings import is_ending_in_aws, is_ending_in_azure, is_ending_in_gcp
from exclave.runner.cloud.imds import AwsMetadata, AzureMetadata, GcpMetadata
from tests.support.clouds import AWS_MACHINE
from tests.support.scripted_api import Reply, ScriptedApi, say

LIFE = "/latest/meta-data/autoscaling/target-lifecycle-state"
EVENTS = "/metadata/scheduledevents"
PREEMPTED = "/computeMetadata/v1/instance/preempted"


@pytest.mark.parametrize(
    ("reply", "is_ending"),
    [(Reply(200, b"Terminated"), True), (Reply(200, b"InService"), False), (Reply(404), False)],
)
async def test_the_group_of_a_machine_in_aws_ends_it(reply: Reply, is_ending: bool) -> None:
    async with ScriptedApi({**AWS_MACHINE, LIFE: [reply]}) as cloud:
        assert await is_ending_in_aws(AwsMetadata(cloud.url)) is is_ending


@pytest.mark.parametrize(("text", "is_ending"), [(b"TRUE\n", True), (b"FALSE", False)])
async def test_google_cloud_takes_a_machine_away(text: bytes, is_ending: bool) -> None:
    async with ScriptedApi({PREEMPTED: [Reply(200, text)]}) as cloud:
        assert await is_ending_in_gcp(GcpMetadata(SystemClock(), cloud.url)) is is_ending


@pytest.mark.parametrize(
    ("kinds", "is_ending"),
    [(["Terminate"], True), (["Reboot", "Preempt"], True), (["Freeze"], False), ([], False)],
)
async def test_azure_announces_that_it_deletes_a_machine(kinds: list[str], is_ending: bool) -> None:
    events = say({"DocumentIncarnation": 1, "Events": [{"EventType": kind} for kind in kinds]})
    async with ScriptedApi({EVENTS: [events]}) as cloud:
        assert await is_ending_in_azure(AzureMetadata(SystemClock(), cloud.url)) is is_ending

    assert cloud.seen[0].headers["metadata"] == "true"
