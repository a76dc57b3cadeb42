"""Enrolment of a machine: evidence of its cloud, patience, the one-time code as the last resort."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from exclave.base.errors import Problem
from exclave.base.ids import SeededRandomness
from exclave.client.problems import RemoteProblem
from exclave.runner.cloud.attest import AwsWitness, AzureWitness, GcpWitness, choose_witness
from exclave.runner.cloud.boot import Boot, BootFileBroken, read_boot
from exclave.runner.cloud.enrolling import CloudEnrolment
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.control_plane.identity import (
    AlreadyEnrolled,
    Identity,
    NotEnrolled,
    StrangeKeys,
    load_identity,
)
from exclave.runner.data_folder import DataFolder
from exclave.wire.attest import (
    AskChallenge,
    Challenge,
    EnrolAttested,
    Evidence,
    GcpEvidence,
    bind_evidence,
    name_audience,
    write_azure_nonce,
    write_bind,
)
from exclave.wire.jobs import JobKind
from exclave.wire.runner import Enrolled, QueueKind, RunnerTimings, ServerKey
from tests.support.clouds import AWS_MACHINE
from tests.support.scripted_api import Reply, ScriptedApi, say

INSTALL, CODE = "ins_" + "0" * 26, "xce_" + "0" * 52
NONCE = "a-" + "0" * 56
KEY = "K" * 43
AT = datetime(2026, 11, 17, 12, 30, 45, tzinfo=UTC)
ENROLLED = Enrolled(
    runner_id="run_" + "0" * 26,
    org_id="org_" + "0" * 26,
    queue_id=INSTALL,
    kind=QueueKind.INSTALL,
    generation=1,
    keys=[ServerKey(kid="k1", public_key=KEY)],
    timings=RunnerTimings(
        poll_hold_s=1, renew_s=1, deadman_read_only_s=1, deadman_mutating_s=1,
        cancel_grace_s=1, cancel_grace_mutating_s=1, result_retry_s=1,
    ),
)  # fmt: skip


class SleepyClock:
    """Notes how long it was slept, and goes on at once."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return AT

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class FakeApi:
    """Answers each try with the next of its answers; the last one stays."""

    def __init__(self, *answers: Enrolled | Problem) -> None:
        self.answers = list(answers)
        self.requests: list[EnrolAttested] = []

    async def ask_challenge(self, request: AskChallenge) -> Challenge:
        return Challenge(nonce=NONCE, expires_in_s=60)

    async def enrol_attested(self, request: EnrolAttested) -> Enrolled:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Problem):
            raise answer
        return answer

    async def close(self) -> None:
        """Close nothing."""


class FakeWitness:
    """Gives evidence, after failing for a while."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.binds: list[bytes] = []

    async def make_evidence(self, bind: bytes) -> Evidence:
        self.binds.append(bind)
        if len(self.binds) <= self.failures:
            raise CloudRefused("the machine has no role yet")
        return GcpEvidence(cloud="gcp", token="a.b.c")


def refuse(code: str, status: int = 403) -> RemoteProblem:
    return RemoteProblem(status, code, "no", hint="", facts={})


class Bench:
    """A machine that enrols."""

    def __init__(
        self, folder: Path, api: FakeApi, *, code: str | None = None, failures: int = 0
    ) -> None:
        self.disk = DataFolder(folder)
        self.clock = SleepyClock()
        self.stopping = asyncio.Event()
        self.witness = FakeWitness(failures)
        self.codes: list[str] = []
        self.code_works = True
        boot = Boot(
            install=INSTALL, cloud="gcp", runner_url="https://x.example", keys=[], code=code
        )
        self.enrolment = CloudEnrolment(boot, self.witness, api, self.clock, SeededRandomness(1))

    async def enrol(self, pinned: dict[str, str] | None = None) -> Identity:
        return await self.enrolment.enrol(
            self.disk,
            name="machine",
            capabilities=(JobKind.NOOP,),
            pinned=pinned,
            by_code=self.use_code,
            stopping=self.stopping,
        )

    async def use_code(self, code: str) -> Identity:
        self.codes.append(code)
        if not self.code_works:
            raise refuse("unauthenticated", 401)
        return Identity(**{**ENROLLED.model_dump(exclude={"keys"}), "keys": {"k1": KEY}})


async def test_evidence_binds_the_challenge_to_the_key_of_the_machine(tmp_path: Path) -> None:
    api = FakeApi(ENROLLED)
    bench = Bench(tmp_path, api)

    identity = await bench.enrol()

    request = api.requests[0]
    assert identity == load_identity(tmp_path)
    assert bench.witness.binds == [bind_evidence(NONCE, INSTALL, request.public_key)]
    assert bench.clock.slept == []


async def test_a_machine_that_boots_waits_for_its_cloud(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FakeApi(ENROLLED), failures=3)

    await bench.enrol()

    assert len(bench.clock.slept) == 3


async def test_a_refused_machine_goes_on_trying_with_the_same_key(tmp_path: Path) -> None:
    api = FakeApi(*[refuse("attestation_refused")] * 12, ENROLLED)
    bench = Bench(tmp_path, api, code=CODE)

    await bench.enrol()

    assert len({request.public_key for request in api.requests}) == 1
    assert {request.code for request in api.requests} == {CODE}
    assert bench.codes == []
    assert max(bench.clock.slept) <= 300


async def test_the_code_is_used_up_only_where_nothing_is_verified(tmp_path: Path) -> None:
    api = FakeApi(refuse("attestation_unavailable", 503))
    bench = Bench(tmp_path, api, code=CODE)

    await bench.enrol()

    assert bench.codes == [CODE]
    assert len(api.requests) == 3


async def test_without_a_code_it_waits_until_something_is_verified(tmp_path: Path) -> None:
    api = FakeApi(*[refuse("attestation_unavailable", 503)] * 5, ENROLLED)
    bench = Bench(tmp_path, api)

    await bench.enrol()

    assert len(api.requests) == 6


async def test_a_code_that_is_refused_does_not_end_the_machine(tmp_path: Path) -> None:
    api = FakeApi(*[refuse("attestation_unavailable", 503)] * 4, ENROLLED)
    bench = Bench(tmp_path, api, code=CODE)
    bench.code_works = False

    await bench.enrol()

    assert bench.codes == [CODE, CODE]


async def test_a_server_with_strange_keys_gets_no_runner(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FakeApi(ENROLLED))

    with pytest.raises(StrangeKeys):
        await bench.enrol(pinned={"k1": "Z" * 43})

    with pytest.raises(NotEnrolled):
        load_identity(tmp_path)


async def test_a_pause_asked_for_is_kept(tmp_path: Path) -> None:
    busy = RemoteProblem(429, "rate_limited", "no", hint="", facts={"retry_after_s": 42})
    bench = Bench(tmp_path, FakeApi(busy, ENROLLED))

    await bench.enrol()

    assert bench.clock.slept[0] >= 42


async def test_a_stopped_machine_stops_trying(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FakeApi(refuse("attestation_refused")))
    bench.stopping.set()

    with pytest.raises(NotEnrolled, match="stopped"):
        await bench.enrol()


async def test_a_disk_with_an_identity_gets_no_second_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FakeApi(ENROLLED))
    await bench.enrol()

    with pytest.raises(AlreadyEnrolled):
        await bench.enrol()


BIND = bind_evidence(NONCE, INSTALL, KEY)


def make_boot(**more: Any) -> Boot:
    facts = {"install": INSTALL, "runner_url": "https://x.example", "keys": [], **more}
    return Boot.model_validate(facts)


async def test_the_witness_of_aws_signs_exactly_the_headers_that_are_checked() -> None:
    async with ScriptedApi(AWS_MACHINE) as imds:
        witness = choose_witness(
            make_boot(cloud="aws", region="cn-north-1"), SleepyClock(), imds.url
        )
        assert isinstance(witness, AwsWitness)
        evidence = await witness.make_evidence(BIND)

    headers = evidence.headers
    assert headers["host"] == "sts.cn-north-1.amazonaws.com.cn"
    assert headers["x-exclave-bind"] == write_bind(BIND)
    assert (
        "content-type;host;x-amz-date;x-amz-security-token;x-exclave-bind"
        in (headers["authorization"])
    )
    assert "SK" not in "".join(headers.values())


async def test_the_witness_of_google_asks_for_this_audience() -> None:
    path = "/computeMetadata/v1/instance/service-accounts/default/identity"
    async with ScriptedApi({path: [Reply(200, b"a.b.c")]}) as imds:
        witness = choose_witness(make_boot(cloud="gcp"), SleepyClock(), imds.url)
        assert isinstance(witness, GcpWitness)
        evidence = await witness.make_evidence(BIND)

    assert evidence.token == "a.b.c"
    wanted = name_audience("https://x.example", BIND)
    assert wanted.rpartition("/")[2] in imds.seen[0].target


async def test_the_witness_of_azure_asks_for_a_token_and_this_nonce() -> None:
    ends = str(int(AT.timestamp()) + 3600)
    script: dict[str, Sequence[Reply]] = {
        "/metadata/identity/oauth2/token": [say({"access_token": "a.b.c", "expires_on": ends})],
        "/metadata/attested/document": [say({"signature": "QUJD"})],
    }
    async with ScriptedApi({path: list(replies) for path, replies in script.items()}) as imds:
        boot = make_boot(cloud="azure", identity="client-1")
        witness = choose_witness(boot, SleepyClock(), imds.url)
        assert isinstance(witness, AzureWitness)
        evidence = await witness.make_evidence(BIND)

    assert (evidence.token, evidence.document) == ("a.b.c", "QUJD")
    assert "client_id=client-1" in imds.seen[0].target
    assert f"nonce={write_azure_nonce(BIND)}" in imds.seen[1].target


def test_a_boot_file_has_no_empty_facts(tmp_path: Path) -> None:
    file = tmp_path / "boot.json"
    boot = make_boot(cloud="aws", region="eu-west-1").model_dump_json()
    file.write_text(boot.replace('"code":null', '"code":""'))

    assert read_boot(file).code is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"install": 1}'])
def test_a_broken_boot_file_is_said_to_be_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "boot.json").write_text(text)

    with pytest.raises(BootFileBroken):
        read_boot(tmp_path / "boot.json")
