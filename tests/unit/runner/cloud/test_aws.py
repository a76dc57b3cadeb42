"""What the runner asks AWS for, for a job."""

from urllib.parse import parse_qs

from exclave.base.ids import SeededRandomness
from exclave.runner.cloud.accounts import Caller, RoleSession
from exclave.runner.cloud.aws import AwsAccount, AwsAddresses
from exclave.runner.cloud.imds import AwsMetadata
from tests.support.clouds import AWS_MACHINE
from tests.support.scripted_api import Reply, ScriptedApi, say
from tests.unit.runner.cloud.cloud_kit import StepClock

KEYS = {
    "AccessKeyId": "AK",
    "SecretAccessKey": "SK",
    "Token": "TOK",
    "Expiration": "2099-01-01T00:00:00Z",
}
SESSION = b"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey>
<SessionToken>T</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>
</AssumeRoleResult></AssumeRoleResponse>"""


async def test_a_session_lasts_a_quarter_of_an_hour_and_has_the_name_of_its_job() -> None:
    role = "/latest/meta-data/iam/security-credentials/runner-role"
    pages = {**AWS_MACHINE, role: [say(KEYS)], "/": [Reply(200, SESSION)]}
    async with ScriptedApi(pages) as cloud:
        account = AwsAccount(
            "eu-west-1",
            Caller(StepClock(), SeededRandomness(1)),
            AwsMetadata(cloud.url),
            AwsAddresses(sts=cloud.url),
        )
        await account.assume_role(RoleSession("arn:aws:iam::1:role/x", "exe_1", "job_1"))

    asked = parse_qs(cloud.seen[-1].body.decode())
    assert asked["DurationSeconds"] == ["900"]
    assert (asked["RoleSessionName"], asked["SourceIdentity"]) == (["exclave-exe_1"], ["job_1"])
