"""Evidence of AWS against an emulated STS that checks signatures, and attacks on it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import ValidationError

from exclave.base.secrets import Secret
from exclave.control.attest.aws import AwsAttestor
from exclave.control.attest.base import Claim, CloudUnreachable, EvidenceRefused
from exclave.control.attest.fetching import Fetched, Fetcher
from exclave.domain.install_identities import Proof
from exclave.domain.stacks import Cloud
from exclave.wire.attest import BIND_HEADER, AwsEvidence, GcpEvidence, write_bind
from tests.integration.control.attest.conftest import (
    INSTALL,
    MACHINE,
    Keys,
    WallClock,
    change,
    make_claim,
    sign_evidence,
)
from tests.support.aws_emulator import ACCOUNT, REGION
from tests.support.scripted_api import Reply, ScriptedApi

Make = Callable[[Claim, Keys, WallClock], AwsEvidence]


class CountingFetcher(Fetcher):
    """Counts what reaches the cloud."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def fetch(self, *args: object, **more: object) -> Fetched:
        self.count += 1
        return await super().fetch(*args, **more)  # type: ignore[arg-type]


async def test_a_machine_of_the_runner_is_known(
    attestor: AwsAttestor, keys: Keys, clock: WallClock
) -> None:
    claim = make_claim()

    proof = await attestor.verify(claim, sign_evidence(claim, keys.get(), clock.at))

    assert proof == Proof(
        cloud=Cloud.AWS,
        account=ACCOUNT,
        principal=f"exclave-{INSTALL}-runner",
        machine=MACHINE,
        region=REGION,
    )


OTHER_NONCE = "a-" + "1" * 56
LOCAL: dict[str, tuple[str, Make]] = {
    "captured headers, another nonce": (
        "nonce",
        lambda claim, keys, clock: sign_evidence(
            replace(claim, nonce=OTHER_NONCE), keys.get(), clock.at
        ),
    ),
    "another public key": (
        "nonce",
        lambda claim, keys, clock: sign_evidence(
            replace(claim, public_key="Z" * 43), keys.get(), clock.at
        ),
    ),
    "another install": (
        "nonce",
        lambda claim, keys, clock: sign_evidence(
            replace(claim, install="ins_" + "1" * 26), keys.get(), clock.at
        ),
    ),
    "the digest is not signed": (
        "headers",
        lambda claim, keys, clock: sign_evidence(claim, keys.get(), clock.at, unbound=True),
    ),
    "a host of the attacker": (
        "headers",
        lambda claim, keys, clock: sign_evidence(
            claim, keys.get(), clock.at, host=f"sts.{REGION}.amazonaws.com.evil.example"
        ),
    ),
    "another region signed": (
        "headers",
        lambda claim, keys, clock: sign_evidence(
            claim, keys.get(), clock.at, signed_region="us-east-1"
        ),
    ),
    "another service signed": (
        "headers",
        lambda claim, keys, clock: sign_evidence(claim, keys.get(), clock.at, service="s3"),
    ),
    "another region than that of the install": (
        "region",
        lambda claim, keys, clock: sign_evidence(claim, keys.get(), clock.at, region="us-east-1"),
    ),
    "a region that nobody reaches": (
        "region",
        lambda claim, keys, clock: sign_evidence(
            claim, keys.get(), clock.at, region="us-iso-east-1"
        ),
    ),
    "an hour old": (
        "date",
        lambda claim, keys, clock: sign_evidence(claim, keys.get(), clock.at - timedelta(hours=1)),
    ),
    "an hour ahead": (
        "date",
        lambda claim, keys, clock: sign_evidence(claim, keys.get(), clock.at + timedelta(hours=1)),
    ),
    "no date": (
        "date",
        lambda claim, keys, clock: change(
            sign_evidence(claim, keys.get(), clock.at), x_amz_date="yesterday"
        ),
    ),
    "a header more": (
        "headers",
        lambda claim, keys, clock: change(
            sign_evidence(claim, keys.get(), clock.at), x_forwarded_host="a"
        ),
    ),
    "a header less": (
        "headers",
        lambda claim, keys, clock: change(
            sign_evidence(claim, keys.get(), clock.at), x_amz_security_token=None
        ),
    ),
    "a header twice in another case": (
        "headers",
        lambda claim, keys, clock: change(
            sign_evidence(claim, keys.get(), clock.at), Host=f"sts.{REGION}.amazonaws.com"
        ),
    ),
    "a line break in a header": (
        "headers",
        lambda claim, keys, clock: change(
            sign_evidence(claim, keys.get(), clock.at), x_exclave_bind="a\r\nhost: evil"
        ),
    ),
    "a blank at the end of a header": (
        "headers",
        lambda claim, keys, clock: change(
            sign_evidence(claim, keys.get(), clock.at), x_exclave_bind="a "
        ),
    ),
    "a header that is too long": (
        "headers",
        lambda claim, keys, clock: change(
            sign_evidence(claim, keys.get(), clock.at), x_amz_security_token="a" * 4097
        ),
    ),
    "another content type": (
        "headers",
        lambda claim, keys, clock: sign_evidence(
            claim, keys.get(), clock.at, content_type="application/json"
        ),
    ),
    "an authorization of another scheme": (
        "headers",
        lambda claim, keys, clock: change(
            sign_evidence(claim, keys.get(), clock.at), authorization="Bearer x"
        ),
    ),
}


@pytest.mark.parametrize("name", LOCAL)
async def test_what_is_wrong_in_itself_never_reaches_the_cloud(
    name: str, aws: object, keys: Keys, clock: WallClock
) -> None:
    reason, make = LOCAL[name]
    claim, fetcher = make_claim(), CountingFetcher()
    attestor = AwsAttestor(fetcher, clock, keys.aws.url)

    with pytest.raises(EvidenceRefused) as refused:
        await attestor.verify(claim, make(claim, keys, clock))

    assert refused.value.reason == reason
    assert fetcher.count == 0


def swap_bind(claim: Claim, keys: Keys, clock: WallClock) -> AwsEvidence:
    """Return evidence for another nonce, with the digest of this one put in."""
    other = replace(claim, nonce=OTHER_NONCE)
    evidence = sign_evidence(other, keys.get(), clock.at)
    return change(evidence, **{BIND_HEADER: write_bind(claim.bind)})


ASKED: dict[str, Make] = {
    "captured headers with the digest swapped": swap_bind,
    "another action signed": lambda claim, keys, clock: sign_evidence(
        claim, keys.get(), clock.at, body=b"Action=GetSessionToken&Version=2011-06-15"
    ),
    "a person in the role of the runner": lambda claim, keys, clock: sign_evidence(
        claim, keys.get(session="alice"), clock.at
    ),
    "a user of the account": lambda claim, keys, clock: sign_evidence(
        claim, keys.get_user(), clock.at
    ),
    "made-up keys": lambda claim, keys, clock: sign_evidence(
        claim, replace(keys.get(), secret_key=Secret("x" * 40)), clock.at
    ),
    "a stolen access key without its session": lambda claim, keys, clock: sign_evidence(
        claim, replace(keys.get(), session_token=Secret("stolen")), clock.at
    ),
}


@pytest.mark.parametrize("name", ASKED)
async def test_what_only_the_cloud_can_tell_is_refused_by_it(
    name: str, attestor: AwsAttestor, keys: Keys, clock: WallClock
) -> None:
    claim = make_claim()

    with pytest.raises(EvidenceRefused) as refused:
        await attestor.verify(claim, ASKED[name](claim, keys, clock))

    assert refused.value.reason == "identity"


async def test_another_role_is_shown_as_what_it_is(
    attestor: AwsAttestor, keys: Keys, clock: WallClock
) -> None:
    claim = make_claim()

    proof = await attestor.verify(claim, sign_evidence(claim, keys.get("other"), clock.at))

    assert proof.principal == "other"


async def test_another_account_is_shown_as_what_it_is(
    attestor: AwsAttestor, keys: Keys, clock: WallClock
) -> None:
    claim = make_claim()
    foreign = keys.get(account="999999999999")

    proof = await attestor.verify(claim, sign_evidence(claim, foreign, clock.at))

    assert proof.account == "999999999999"


ARN = f"arn:aws:sts::{ACCOUNT}:assumed-role/exclave-{INSTALL}-runner/{MACHINE}"
XML = """<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<GetCallerIdentityResult><Arn>{arn}</Arn><Account>{account}</Account></GetCallerIdentityResult>
</GetCallerIdentityResponse>"""


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, b"<!DOCTYPE x><x/>"),
        Reply(200, b"not xml"),
        Reply(200, b"<x/>"),
        Reply(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>"),
        Reply(302, b"", {"Location": "http://127.0.0.1:1/"}),
        Reply(200, XML.format(arn=ARN, account="999999999999").encode()),
        Reply(200, XML.format(arn=ARN.replace("aws:", "aws-cn:"), account=ACCOUNT).encode()),
        Reply(200, XML.format(arn=f"arn:aws:iam::{ACCOUNT}:root", account=ACCOUNT).encode()),
    ],
)
async def test_a_strange_answer_proves_nothing(reply: Reply, keys: Keys, clock: WallClock) -> None:
    claim = make_claim()
    async with ScriptedApi({"/": [reply]}) as sts:
        with pytest.raises(EvidenceRefused):
            await AwsAttestor(Fetcher(), clock, sts.url).verify(
                claim, sign_evidence(claim, keys.get(), clock.at)
            )

    assert sts.count("POST", "/") == 1


@pytest.mark.parametrize(
    "reply", [Reply(503), Reply(429), Reply(drop=True), Reply(200, b"x" * 9000), Reply(hang=True)]
)
async def test_a_cloud_that_does_not_answer_is_no_refusal(
    reply: Reply, keys: Keys, clock: WallClock
) -> None:
    claim = make_claim()
    async with ScriptedApi({"/": [reply]}) as sts, asyncio.timeout(20):
        with pytest.raises(CloudUnreachable):
            await AwsAttestor(Fetcher(limit_s=0.5), clock, sts.url).verify(
                claim, sign_evidence(claim, keys.get(), clock.at)
            )


async def test_the_operators_proxy_is_used(keys: Keys, clock: WallClock) -> None:
    claim = make_claim()
    answer = Reply(200, XML.format(arn=ARN, account=ACCOUNT).encode())
    url = "http://sts.example/"
    async with ScriptedApi({url: [answer]}) as proxy:
        attestor = AwsAttestor(Fetcher(proxy.url), clock, url.rstrip("/"))
        proof = await attestor.verify(claim, sign_evidence(claim, keys.get(), clock.at))

    assert proof.machine == MACHINE
    assert [seen.target for seen in proxy.seen] == [url]


async def test_evidence_of_another_cloud_is_none_of_aws(attestor: AwsAttestor) -> None:
    with pytest.raises(EvidenceRefused):
        await attestor.verify(make_claim(), GcpEvidence(cloud="gcp", token="a.b.c"))


@pytest.mark.parametrize("name", ["document", "signature", "pkcs7"])
def test_an_instance_identity_document_is_no_evidence(
    name: str, keys: Keys, clock: WallClock
) -> None:
    """It is the same for the whole life of a machine, so whoever read it once has it."""
    evidence = sign_evidence(make_claim(), keys.get(), clock.at).model_dump()

    AwsEvidence.model_validate(evidence)
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        AwsEvidence.model_validate({**evidence, name: "{}"})
