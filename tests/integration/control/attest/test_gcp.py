"""Identity tokens of Google Cloud, signed with a key of our own, and attacks on them."""

from collections.abc import Callable
from typing import Any

import jwt
import pytest

from exclave.control.attest.base import Claim, CloudUnreachable, EvidenceRefused
from exclave.control.attest.fetching import Fetcher
from exclave.control.attest.gcp import GcpAttestor
from exclave.control.attest.jwt_keys import KeySets
from exclave.domain.install_identities import Proof
from exclave.domain.runner_principals import name_gcp_email
from exclave.domain.stacks import Cloud
from exclave.wire.attest import AwsEvidence, GcpEvidence, name_audience
from tests.integration.control.attest.conftest import INSTALL, WallClock, make_claim
from tests.support.cloud_issuers import TokenIssuer
from tests.support.scripted_api import Reply, ScriptedApi, say

PROJECT = "acme-prod"
EMAIL = name_gcp_email(INSTALL, PROJECT)
GOOGLE, STRANGER = TokenIssuer(), TokenIssuer()
ENGINE = {"project_id": PROJECT, "instance_id": "42", "zone": "europe-west1-b"}


def claim_it(**more: Any) -> Claim:
    return make_claim(region="europe-west1", account=PROJECT, **more)


def make_claims(claim: Claim, clock: WallClock, **more: Any) -> dict[str, Any]:
    """Return what Google signs for a machine."""
    now = int(clock.at.timestamp())
    facts = {
        "iss": "https://accounts.google.com",
        "aud": name_audience(claim.runner_url, claim.bind),
        "email": EMAIL,
        "email_verified": True,
        "iat": now,
        "exp": now + 3600,
        "google": {"compute_engine": ENGINE},
        **more,
    }
    return {key: value for key, value in facts.items() if value is not None}


async def verify(
    clock: WallClock, claim: Claim, token: str, replies: list[Reply] | None = None
) -> Proof:
    async with ScriptedApi({"/": replies or [say(GOOGLE.list_keys())]}) as google:
        keys = KeySets(Fetcher(limit_s=2), clock)
        attestor = GcpAttestor(keys, f"{google.url}/")
        return await attestor.verify(claim, GcpEvidence(cloud="gcp", token=token))


async def test_a_machine_of_the_runners_account_is_known(clock: WallClock) -> None:
    claim = claim_it()

    proof = await verify(clock, claim, GOOGLE.sign(make_claims(claim, clock)))

    assert proof == Proof(
        cloud=Cloud.GCP,
        account=PROJECT,
        principal=EMAIL,
        machine="42",
        region="europe-west1",
    )


ATTACKS: dict[str, Callable[[Claim, WallClock], str]] = {
    "another nonce": lambda _, clock: GOOGLE.sign(
        make_claims(claim_it(nonce="a-" + "1" * 56), clock)
    ),
    "another public key": lambda _, clock: GOOGLE.sign(
        make_claims(claim_it(public_key="Z" * 43), clock)
    ),
    "another install": lambda _, clock: GOOGLE.sign(
        make_claims(claim_it(install="ins_" + "1" * 26), clock)
    ),
    "another control plane": lambda _, clock: GOOGLE.sign(
        make_claims(claim_it(runner_url="https://evil.example"), clock)
    ),
    "another signer with the same key id": lambda claim, clock: STRANGER.sign(
        make_claims(claim, clock)
    ),
    "an unknown key id": lambda claim, clock: GOOGLE.sign(make_claims(claim, clock), kid="other"),
    "no signature": lambda claim, clock: jwt.encode(
        make_claims(claim, clock), "", algorithm="none", headers={"kid": GOOGLE.key_id}
    ),
    "a secret in place of the public key": lambda claim, clock: jwt.encode(
        make_claims(claim, clock), "x" * 64, algorithm="HS256", headers={"kid": GOOGLE.key_id}
    ),
    "another issuer": lambda claim, clock: GOOGLE.sign(
        make_claims(claim, clock, iss="https://evil.example")
    ),
    "expired": lambda claim, clock: GOOGLE.sign(
        make_claims(claim, clock, exp=int(clock.at.timestamp()) - 600)
    ),
    "no end": lambda claim, clock: GOOGLE.sign(make_claims(claim, clock, exp=None)),
    "from the future": lambda claim, clock: GOOGLE.sign(
        make_claims(claim, clock, iat=int(clock.at.timestamp()) + 600)
    ),
    "not to be used yet": lambda claim, clock: GOOGLE.sign(
        make_claims(claim, clock, nbf=int(clock.at.timestamp()) + 600)
    ),
    "times that are no numbers": lambda claim, clock: GOOGLE.sign(
        make_claims(claim, clock, exp="never")
    ),
    "another service account": lambda claim, clock: GOOGLE.sign(
        make_claims(claim, clock, email=f"someone@{PROJECT}.iam.gserviceaccount.com")
    ),
    "the right name in another project": lambda claim, clock: GOOGLE.sign(
        make_claims(claim, clock, email=name_gcp_email(INSTALL, "evil-prod"))
    ),
    "an email that is not verified": lambda claim, clock: GOOGLE.sign(
        make_claims(claim, clock, email_verified=False)
    ),
    "an impersonated account without a machine": lambda claim, clock: GOOGLE.sign(
        make_claims(claim, clock, google={})
    ),
    "a machine without a zone": lambda claim, clock: GOOGLE.sign(
        make_claims(claim, clock, google={"compute_engine": {**ENGINE, "zone": ""}})
    ),
    "no token at all": lambda _claim, _clock: "a.b.c",
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_forged_or_borrowed_token_is_refused(name: str, clock: WallClock) -> None:
    claim = claim_it()

    with pytest.raises(EvidenceRefused):
        await verify(clock, claim, ATTACKS[name](claim, clock))


async def test_another_project_is_shown_as_what_it_is(clock: WallClock) -> None:
    claim = claim_it()
    engine = {"compute_engine": {**ENGINE, "project_id": "evil-prod"}}
    email = name_gcp_email(INSTALL, "evil-prod")
    claims = make_claims(claim, clock, google=engine, email=email)

    proof = await verify(clock, claim, GOOGLE.sign(claims))

    assert proof.account == "evil-prod"


@pytest.mark.parametrize(
    "reply",
    [Reply(500), Reply(200, b"no json"), say({"keys": []}), say([]), Reply(200, b"x" * 300_000)],
)
async def test_keys_that_cannot_be_had_are_no_refusal(reply: Reply, clock: WallClock) -> None:
    claim = claim_it()

    with pytest.raises(CloudUnreachable):
        await verify(clock, claim, GOOGLE.sign(make_claims(claim, clock)), [reply])


async def test_keys_are_kept_for_an_hour_and_fetched_for_an_unknown_one_once_a_minute(
    clock: WallClock,
) -> None:
    rotated = TokenIssuer(key_id="key-2")
    replies = [say(GOOGLE.list_keys()), say(rotated.list_keys())]
    async with ScriptedApi({"/": replies}) as google:
        keys = KeySets(Fetcher(), clock)

        async def check(issuer: TokenIssuer) -> None:
            claims = make_claims(claim_it(), clock)
            url = f"{google.url}/"
            await keys.check_token(
                issuer.sign(claims), url, issuer=claims["iss"], audience=claims["aud"]
            )

        await check(GOOGLE)
        clock.advance(59)
        with pytest.raises(EvidenceRefused):
            await check(rotated)
        before = google.count("GET", "/")
        clock.advance(2)
        await check(rotated)
        after = google.count("GET", "/")

    assert (before, after) == (1, 2)


async def test_evidence_of_another_cloud_is_none_of_google(clock: WallClock) -> None:
    attestor = GcpAttestor(KeySets(Fetcher(), clock))

    with pytest.raises(EvidenceRefused):
        await attestor.verify(claim_it(), AwsEvidence(cloud="aws", region="eu-west-1", headers={}))
