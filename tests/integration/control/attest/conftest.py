"""An install on AWS, emulated by moto, and machines that enrol at a control plane."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from exclave.base.aws_regions import name_service
from exclave.control.attest.aws import AwsAttestor
from exclave.control.attest.base import Claim
from exclave.control.attest.fetching import Fetcher
from exclave.domain.runner_principals import name_aws_role
from exclave.runner.cloud.sigv4 import AwsKeys, SignedFor, sign_post
from exclave.wire.attest import (
    BIND_HEADER,
    STS_BODY,
    STS_CONTENT_TYPE,
    AwsEvidence,
    write_bind,
)
from tests.support.aws_emulator import ACCOUNT, REGION, Aws, start_aws
from tests.support.world import ManualClock

MACHINE = "i-0123456789abcdef0"
OTHER_MACHINE = "i-0fedcba9876543210"
INSTALL = "ins_" + "0" * 26


class WallClock(ManualClock):
    """A clock that begins now: moto compares the dates of signatures with its own."""

    def __init__(self) -> None:
        super().__init__()
        self.at = datetime.now(UTC)


@pytest.fixture(scope="session")
def aws() -> Iterator[Aws]:
    with start_aws() as started:
        yield started


@dataclass
class Keys:
    """Keys of machines and people in the emulated account."""

    aws: Aws
    role: str
    made: dict[tuple[str, str, str], AwsKeys] = field(default_factory=dict)

    def get(self, role: str = "", session: str = MACHINE, account: str = ACCOUNT) -> AwsKeys:
        name = (role or self.role, session, account)
        if name not in self.made:
            self.aws.check_signatures(on=False)
            self.made[name] = self.aws.assume(*name)
            self.aws.check_signatures()
        return self.made[name]

    def get_user(self) -> AwsKeys:
        if ("user", "", "") not in self.made:
            self.aws.check_signatures(on=False)
            self.made["user", "", ""] = self.aws.make_user(f"person-{self.role}")
            self.aws.check_signatures()
        return self.made["user", "", ""]


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
def attestor(aws: Aws, clock: WallClock) -> AwsAttestor:
    return AwsAttestor(Fetcher(), clock, aws.url)


@pytest.fixture
def keys(aws: Aws) -> Keys:
    return Keys(aws, name_aws_role(INSTALL))


def make_claim(**more: Any) -> Claim:
    """Return the claim of a machine of the install."""
    facts: dict[str, Any] = {
        "install": INSTALL,
        "public_key": "K" * 43,
        "nonce": "a-" + "0" * 56,
        "runner_url": "http://127.0.0.1:8701",
        "region": REGION,
        "account": ACCOUNT,
    }
    return Claim(**{**facts, **more})


def sign_evidence(
    claim: Claim,
    keys: AwsKeys,
    at: datetime,
    *,
    bind: bytes | None = None,
    region: str = REGION,
    signed_region: str = "",
    service: str = "sts",
    host: str = "",
    body: bytes = STS_BODY,
    content_type: str = STS_CONTENT_TYPE,
    unbound: bool = False,
) -> AwsEvidence:
    """Return evidence as a runner makes it, or wrong in one way."""
    text = write_bind(claim.bind if bind is None else bind)
    headers = sign_post(
        keys,
        SignedFor(service, signed_region or region, at),
        host or name_service("sts", region),
        body,
        content_type,
        {} if unbound else {BIND_HEADER: text},
    )
    return AwsEvidence(cloud="aws", region=region, headers={**headers, BIND_HEADER: text})


def change(evidence: AwsEvidence, **headers: str | None) -> AwsEvidence:
    """Return evidence with other headers; `_` stands for a hyphen, None drops a header."""
    changed = {name.replace("_", "-"): value for name, value in headers.items()}
    merged = {**evidence.headers, **changed}
    kept = {name: value for name, value in merged.items() if value is not None}
    return evidence.model_copy(update={"headers": kept})
