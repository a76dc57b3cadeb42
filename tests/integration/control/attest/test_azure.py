"""Tokens and attested documents of Azure, with keys and a chain of our own, and attacks on them."""

import base64
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import certifi
import pytest
from cryptography.x509.verification import Store

from exclave.control.attest.azure import AzureAddresses, AzureAttestor, load_roots
from exclave.control.attest.base import Claim, CloudUnreachable, EvidenceRefused
from exclave.control.attest.fetching import Fetcher
from exclave.control.attest.jwt_keys import KeySets
from exclave.domain.install_identities import Proof
from exclave.domain.stacks import Cloud
from exclave.wire.attest import (
    AZURE_AUDIENCE,
    AzureEvidence,
    GcpEvidence,
    write_azure_nonce,
)
from tests.integration.control.attest.conftest import INSTALL, WallClock, make_claim
from tests.support.cloud_issuers import Authority, Signer, TokenIssuer, make_rsa_key
from tests.support.scripted_api import Reply, ScriptedApi, say

TENANT = "11111111-1111-4111-8111-111111111111"
SUBSCRIPTION = "22222222-2222-4222-8222-222222222222"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/acme"
IDENTITY = (
    f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/exclave-{INSTALL}-runner"
)
HOST = "metadata.azure.com"
ENTRA, STRANGER = TokenIssuer(), TokenIssuer()
ROOT = Authority("Root")
MIDDLE = Authority("Middle", ROOT)
EVIL_ROOT = Authority("Root")
LEAF_KEY = make_rsa_key()


@dataclass
class Azure:
    """An Azure on the loopback, and evidence as its machines get it."""

    api: ScriptedApi
    clock: WallClock
    signer: Signer
    roots: Store
    hosts: frozenset[str]
    claim: Claim = field(
        default_factory=lambda: make_claim(region="westeurope", account=SUBSCRIPTION, tenant=TENANT)
    )

    def make_token(self, issuer: TokenIssuer = ENTRA, **more: Any) -> str:
        now = int(self.clock.at.timestamp())
        facts = {
            "iss": f"https://sts.windows.net/{TENANT}/",
            "aud": AZURE_AUDIENCE,
            "iat": now,
            "exp": now + 86_000,
            "tid": TENANT,
            "xms_mirid": IDENTITY,
            "xms_az_rid": f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/x",
            **more,
        }
        return issuer.sign({key: value for key, value in facts.items() if value is not None})

    def make_facts(self, **more: Any) -> dict[str, Any]:
        return {
            "nonce": write_azure_nonce(self.claim.bind),
            "vmId": "vm-1",
            "subscriptionId": SUBSCRIPTION,
            "timeStamp": {
                "createdOn": write_time(self.clock.at),
                "expiresOn": write_time(self.clock.at + timedelta(hours=6)),
            },
            **more,
        }

    async def verify(
        self,
        *,
        token: str | None = None,
        document: str | None = None,
        claim: Claim | None = None,
    ) -> Proof:
        fetcher = Fetcher(limit_s=2)
        addresses = AzureAddresses(f"{self.api.url}/keys", self.hosts)
        attestor = AzureAttestor(
            fetcher, KeySets(fetcher, self.clock), self.clock, self.roots, addresses
        )
        evidence = AzureEvidence(
            cloud="azure",
            token=token or self.make_token(),
            document=document or self.signer.sign(self.make_facts()),
        )
        return await attestor.verify(claim or self.claim, evidence)


def write_time(at: datetime) -> str:
    return at.strftime("%m/%d/%y %H:%M:%S -0000")


@pytest.fixture
async def azure(clock: WallClock) -> AsyncIterator[Azure]:
    script = {"/keys": [say(ENTRA.list_keys())], "/middle.crt": [Reply(200, MIDDLE.der)]}
    async with ScriptedApi(script) as api:
        leaf = MIDDLE.issue(HOST, LEAF_KEY, host=HOST, issuer_url=f"{api.url}/middle.crt")
        hosts = frozenset({api.url.removeprefix("http://")})
        yield Azure(api, clock, Signer(leaf, LEAF_KEY), load_roots(ROOT.pem), hosts)


async def test_a_machine_with_the_runners_identity_is_known(azure: Azure) -> None:
    proof = await azure.verify()

    assert proof == Proof(
        cloud=Cloud.AZURE,
        account=SUBSCRIPTION,
        tenant=TENANT,
        principal=IDENTITY.lower(),
        machine="vm-1",
    )
    assert azure.api.count("GET", "/middle.crt") == 1


async def test_a_document_without_signed_attributes_is_known_too(azure: Azure) -> None:
    document = azure.signer.sign(azure.make_facts(), attributes=False)

    assert (await azure.verify(document=document)).machine == "vm-1"


async def test_without_a_pin_the_token_names_its_tenant(azure: Azure) -> None:
    claim = make_claim(region="westeurope", account="", tenant="")
    document = azure.signer.sign(azure.make_facts(nonce=write_azure_nonce(claim.bind)))

    assert (await azure.verify(claim=claim, document=document)).tenant == TENANT


async def test_the_token_need_not_say_where_its_machine_is(azure: Azure) -> None:
    assert (await azure.verify(token=azure.make_token(xms_az_rid=None))).machine == "vm-1"


TOKENS: dict[str, dict[str, Any]] = {
    "for the management of Azure": {"aud": "https://management.azure.com/"},
    "of another identity": {"xms_mirid": f"{GROUP}/x"},
    "of an identity of another install": {"xms_mirid": IDENTITY.replace("-runner", "1-runner")},
    "of a role of the install": {"xms_mirid": IDENTITY.replace("-runner", "-provision")},
    "of another tenant": {"iss": "https://sts.windows.net/evil/"},
    "without an identity": {"xms_mirid": None},
    "expired": {"exp": 1_600_000_000},
    "of a machine in another group": {
        "xms_az_rid": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/evil/providers/x"
    },
}


@pytest.mark.parametrize("name", TOKENS)
async def test_a_token_that_proves_something_else_is_refused(name: str, azure: Azure) -> None:
    with pytest.raises(EvidenceRefused):
        await azure.verify(token=azure.make_token(**TOKENS[name]))


async def test_a_token_of_another_signer_is_refused(azure: Azure) -> None:
    with pytest.raises(EvidenceRefused):
        await azure.verify(token=azure.make_token(STRANGER))


def forge_leaf(azure: Azure, authority: Authority, host: str = HOST) -> Signer:
    key = make_rsa_key()
    url = f"{azure.api.url}/middle.crt"
    return Signer(authority.issue(host, key, host=host, issuer_url=url), key)


def change_byte(document: str) -> str:
    return base64.b64encode(base64.b64decode(document).replace(b"vm-1", b"vm-2")).decode()


DOCUMENTS: dict[str, Callable[[Azure], str]] = {
    "for another nonce": lambda azure: azure.signer.sign(azure.make_facts(nonce="1234567890")),
    "of another subscription": lambda azure: azure.signer.sign(
        azure.make_facts(subscriptionId=TENANT)
    ),
    "of no machine": lambda azure: azure.signer.sign(azure.make_facts(vmId="")),
    "without times": lambda azure: azure.signer.sign(azure.make_facts(timeStamp={})),
    "made for later": lambda azure: azure.signer.sign(
        azure.make_facts(
            timeStamp={
                "createdOn": write_time(azure.clock.at + timedelta(hours=1)),
                "expiresOn": write_time(azure.clock.at + timedelta(hours=6)),
            }
        )
    ),
    "with a byte changed": lambda azure: change_byte(azure.signer.sign(azure.make_facts())),
    "with a byte changed and no attributes": lambda azure: change_byte(
        azure.signer.sign(azure.make_facts(), attributes=False)
    ),
    "signed by a certificate of its own": lambda azure: forge_leaf(azure, EVIL_ROOT).sign(
        azure.make_facts()
    ),
    "signed for another name by the right authority": lambda azure: forge_leaf(
        azure, MIDDLE, "evil.example.com"
    ).sign(azure.make_facts()),
    "signed twice": lambda azure: azure.signer.sign(azure.make_facts(), twice=True),
    "signed with another key": lambda azure: Signer(azure.signer.certificate, make_rsa_key()).sign(
        azure.make_facts()
    ),
    "that is no JSON object": lambda azure: azure.signer.sign([]),  # type: ignore[arg-type]
    "that is no PKCS#7": lambda _: base64.b64encode(b"hello").decode(),
    "that is no Base64": lambda _: "====",
    "that is cut off": lambda azure: azure.signer.sign(azure.make_facts())[:1000],
    "that is nested a thousand times": lambda _: base64.b64encode(b"\x30\x80" * 5000).decode(),
}


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_a_document_that_proves_something_else_is_refused(name: str, azure: Azure) -> None:
    with pytest.raises(EvidenceRefused):
        await azure.verify(document=DOCUMENTS[name](azure))


async def test_a_document_is_refused_when_it_has_expired(azure: Azure) -> None:
    document = azure.signer.sign(azure.make_facts())
    azure.clock.advance(7 * 3600)

    with pytest.raises(EvidenceRefused) as refused:
        await azure.verify(document=document)

    assert refused.value.reason == "date"


async def test_evidence_for_another_key_is_refused(azure: Azure) -> None:
    claim = make_claim(
        region="westeurope", account=SUBSCRIPTION, tenant=TENANT, public_key="Z" * 43
    )

    with pytest.raises(EvidenceRefused):
        await azure.verify(claim=claim)


async def test_an_issuer_elsewhere_is_not_asked(azure: Azure) -> None:
    azure.hosts = frozenset({"www.microsoft.com"})

    with pytest.raises(EvidenceRefused, match="not asked"):
        await azure.verify()

    assert azure.api.count("GET", "/middle.crt") == 0


async def test_an_issuer_that_does_not_answer_is_no_refusal(clock: WallClock) -> None:
    script = {"/keys": [say(ENTRA.list_keys())], "/middle.crt": [Reply(503)]}
    async with ScriptedApi(script) as api:
        leaf = MIDDLE.issue(HOST, LEAF_KEY, host=HOST, issuer_url=f"{api.url}/middle.crt")
        hosts = frozenset({api.url.removeprefix("http://")})
        site = Azure(api, clock, Signer(leaf, LEAF_KEY), load_roots(ROOT.pem), hosts)
        with pytest.raises(CloudUnreachable):
            await site.verify()


def test_the_public_roots_can_be_read() -> None:
    assert load_roots(Path(certifi.where()).read_bytes())


async def test_evidence_of_another_cloud_is_none_of_azure(azure: Azure) -> None:
    fetcher = Fetcher()
    attestor = AzureAttestor(fetcher, KeySets(fetcher, azure.clock), azure.clock, azure.roots)

    with pytest.raises(EvidenceRefused):
        await attestor.verify(azure.claim, GcpEvidence(cloud="gcp", token="a.b.c"))
