"""Enrolment by attestation on both databases: nonces, pins, codes, replacement, limits."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.base.clock import SystemClock
from exclave.base.errors import Unauthenticated
from exclave.control.access import authenticate_runner
from exclave.control.attest import enrolment, pins
from exclave.control.attest.base import AnyEvidence, Attestors, Claim, CloudUnreachable
from exclave.control.attest.problems import (
    AttestationRefused,
    AttestationUnavailable,
    AttestationUnconfirmed,
)
from exclave.control.audit import list_audit
from exclave.control.background.tasks import list_chores
from exclave.control.deps import Deps
from exclave.control.dispatch import runners
from exclave.control.dispatch.enrolment import RunnerRevoked
from exclave.control.installs import cloud_accounts
from exclave.control.runtime.rates import RateLimited
from exclave.domain.identity import InstallId, QueueId, RunnerId, User
from exclave.domain.install_identities import PinnedBy, Proof
from exclave.domain.installs import AppInstall
from exclave.domain.runner_principals import name_gcp_email
from exclave.domain.stacks import Cloud
from exclave.storage import install_identities
from exclave.storage.engine.database import Tx
from exclave.storage.installs import find_install
from exclave.storage.tables.attest import attest_nonces
from exclave.storage.tables.installs import app_installs as installs_table
from exclave.wire.attest import AskChallenge, EnrolAttested, GcpEvidence
from exclave.wire.cloud_accounts import ResetAccount
from exclave.wire.envelope import public_text
from exclave.wire.runner import PROTOCOL, Enrolled
from tests.integration.control.conftest import World
from tests.support.databases import open_database
from tests.support.installs import make_app, make_app_install
from tests.support.world import ManualClock, ask_token, make_deps, make_org

RUNNER = "runner"


class FakeAttestor:
    """Believes what the token of the evidence says: account, role, machine, region."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []
        self.unreachable = False

    async def verify(self, claim: Claim, evidence: AnyEvidence) -> Proof:
        self.claims.append(claim)
        if self.unreachable:
            raise CloudUnreachable("gone")
        assert isinstance(evidence, GcpEvidence)
        account, principal, machine, region = evidence.token.split(".")
        if principal == RUNNER:
            principal = name_gcp_email(claim.install, account)
        return Proof(Cloud.GCP, account, principal, machine, region)


@dataclass
class Site:
    """A control plane, an install in a cloud, and its machines."""

    deps: Deps
    user: User
    install: InstallId
    attestor: FakeAttestor
    clock: ManualClock

    async def ask(self, key: Ed25519PrivateKey, **more: Any) -> str:
        facts = {"install_id": self.install, "cloud": "gcp", "public_key": public_text(key)}
        asked = AskChallenge.model_validate({**facts, **more})
        return (await enrolment.issue_challenge(self.deps, asked, "10.0.0.1")).nonce

    async def enrol(
        self,
        key: Ed25519PrivateKey,
        *,
        account: str = "acme-prod",
        principal: str = RUNNER,
        machine: str = "m-1",
        region: str = "europe-west1",
        address: str = "10.0.0.1",
        nonce: str | None = None,
        **more: Any,
    ) -> Enrolled:
        facts = {
            "install_id": self.install,
            "nonce": nonce or await self.ask(key),
            "public_key": public_text(key),
            "name": "machine",
            "version": "test",
            "protocol": PROTOCOL,
            "capabilities": ["noop"],
            "evidence": {"cloud": "gcp", "token": f"{account}.{principal}.{machine}.{region}"},
        }
        request = EnrolAttested.model_validate({**facts, **more})
        return await enrolment.enrol_attested(self.deps, request, address)

    async def make_code(self) -> str:
        made = await runners.create_enrolment(self.deps, self.user, QueueId(self.install))
        return made.token

    async def pin(self, account: str = "acme-prod", region: str = "europe-west1") -> None:
        body = ResetAccount(region=region, account=account, reason="known beforehand")
        await cloud_accounts.reset_account(self.deps, self.user, self.install, body)

    async def list_actions(self) -> list[str]:
        page = await list_audit(self.deps, self.user, "", 50)
        return [entry.action for entry in page.items]

    async def find_reason(self, action: str) -> str:
        page = await list_audit(self.deps, self.user, "", 50)
        return next(entry.detail["reason"] for entry in page.items if entry.action == action)


@pytest.fixture
async def site(world: World) -> Site:
    attestor = FakeAttestor()
    deps = replace(world.deps, attestors=Attestors({Cloud.GCP: attestor}))
    await make_app(deps, world.user)
    made = await make_app_install(deps, world.user, "shop", provision=False)
    moved = installs_table.update().where(installs_table.c.install_id == made.id)
    await deps.db.write(lambda tx: tx.run(moved.values(target=Cloud.GCP)))
    return Site(deps, world.user, InstallId(made.id), attestor, world.clock)


@pytest.fixture
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


async def test_a_machine_of_the_pinned_account_enrols_without_a_secret(
    site: Site, key: Ed25519PrivateKey
) -> None:
    await site.pin()

    enrolled = await site.enrol(key)

    who = await authenticate_runner(
        site.deps, await ask_token(site.deps, enrolled.runner_id, key, 1)
    )
    assert who.queue == QueueId(site.install)
    assert site.attestor.claims[0].account == "acme-prod"
    shown = await cloud_accounts.show_account(site.deps, site.user, site.install)
    assert (shown.account, shown.principal, shown.machine) == (
        "acme-prod",
        name_gcp_email(site.install, "acme-prod"),
        "m-1",
    )
    assert shown.pinned_by is PinnedBy.CREATION
    assert "account_pinned" in await site.list_actions()


@pytest.mark.parametrize(
    ("more", "action", "reason"),
    [
        ({"account": "evil"}, "attestation_foreign", "account"),
        ({"region": "us-east1"}, "attestation_foreign", "region"),
        ({"principal": "other-role"}, "attestation_foreign", "identity"),
    ],
)
async def test_a_foreign_machine_is_refused_and_shown(
    site: Site, key: Ed25519PrivateKey, more: dict[str, str], action: str, reason: str
) -> None:
    await site.pin()

    with pytest.raises(AttestationRefused):
        await site.enrol(key, **more)

    assert await site.find_reason(action) == reason
    shown = await cloud_accounts.show_account(site.deps, site.user, site.install)
    assert "tried to enrol" in shown.alarm
    assert shown.runner_id is None


async def test_a_refusal_says_nothing_about_its_reason(site: Site, key: Ed25519PrivateKey) -> None:
    await site.pin()
    refusals = []
    unknown = "ins_" + "0" * 26
    for more in ({"account": "evil"}, {"region": "us-east1"}, {"nonce": "a-" + "0" * 56}):
        with pytest.raises(AttestationRefused) as refused:
            await site.enrol(key, **more)
        refusals.append((refused.value.message, refused.value.advice, refused.value.facts))
    nonce = await site.ask(key, install_id=unknown)
    with pytest.raises(AttestationRefused) as refused:
        await site.enrol(key, install_id=unknown, nonce=nonce)
    refusals.append((refused.value.message, refused.value.advice, refused.value.facts))

    assert all(refusal == refusals[0] for refusal in refusals)


async def test_a_nonce_is_good_for_one_try_whatever_comes_of_it(
    site: Site, key: Ed25519PrivateKey
) -> None:
    await site.pin()
    nonce = await site.ask(key)
    with pytest.raises(AttestationRefused):
        await site.enrol(key, account="evil", nonce=nonce)

    with pytest.raises(AttestationRefused):
        await site.enrol(key, nonce=nonce)

    assert len(site.attestor.claims) == 1
    assert await site.find_reason("attestation_refused") == "nonce"


@pytest.mark.parametrize(
    "asked",
    [
        {"public_key": "Z" * 43},
        {"install_id": "ins_" + "0" * 26},
        {"cloud": "gcp", "public_key": "A" * 43},
    ],
)
async def test_a_nonce_of_another_key_or_install_is_none(
    site: Site, key: Ed25519PrivateKey, asked: dict[str, str]
) -> None:
    await site.pin()

    with pytest.raises(AttestationRefused):
        await site.enrol(key, nonce=await site.ask(key, **asked))

    assert site.attestor.claims == []


async def test_an_old_nonce_is_none(site: Site, key: Ed25519PrivateKey) -> None:
    await site.pin()
    nonce = await site.ask(key)
    site.clock.advance(61)

    with pytest.raises(AttestationRefused):
        await site.enrol(key, nonce=nonce)

    assert site.attestor.claims == []


async def test_used_nonces_are_cleaned_and_unused_ones_leave_nothing(
    site: Site, key: Ed25519PrivateKey
) -> None:
    await site.pin()
    await site.ask(key)
    await site.enrol(key)

    async def count() -> int:
        rows = attest_nonces.select()
        return len(await site.deps.db.read(lambda tx: tx.all(rows)))

    before = await count()
    site.clock.advance(601)
    forget = next(chore for chore in list_chores(site.deps) if chore.name == "forget")
    await forget.run_round()

    assert (before, await count()) == (1, 0)


async def test_without_an_account_the_first_machine_with_the_code_decides(
    site: Site, key: Ed25519PrivateKey
) -> None:
    code = await site.make_code()
    with pytest.raises(AttestationRefused):
        await site.enrol(key)
    before = len(site.attestor.claims)

    enrolled = await site.enrol(key, code=code)

    shown = await cloud_accounts.show_account(site.deps, site.user, site.install)
    assert before == 0
    assert (shown.account, shown.pinned_by) == ("acme-prod", PinnedBy.CODE)
    assert shown.runner_id == enrolled.runner_id


async def test_the_code_works_once_and_the_account_stays(
    site: Site, key: Ed25519PrivateKey
) -> None:
    code = await site.make_code()
    await site.enrol(key, code=code)

    with pytest.raises(AttestationRefused):
        await site.enrol(Ed25519PrivateKey.generate(), account="evil", machine="m-2", code=code)
    replaced = await site.enrol(Ed25519PrivateKey.generate(), machine="m-2")

    shown = await cloud_accounts.show_account(site.deps, site.user, site.install)
    assert (shown.account, shown.runner_id) == ("acme-prod", replaced.runner_id)


async def test_a_code_of_another_install_opens_nothing(
    site: Site, world: World, key: Ed25519PrivateKey
) -> None:
    other = await runners.create_enrolment(site.deps, site.user, world.queue)

    with pytest.raises(AttestationRefused):
        await site.enrol(key, code=other.token)

    assert await site.find_reason("attestation_refused") == "code"


async def test_a_machine_that_takes_over_ends_the_identity_before(
    site: Site, key: Ed25519PrivateKey
) -> None:
    await site.pin()
    first = await site.enrol(key)
    await ask_token(site.deps, first.runner_id, key, 1)
    fresh = Ed25519PrivateKey.generate()

    second = await site.enrol(fresh, machine="m-2")

    assert second.runner_id != first.runner_id
    with pytest.raises(RunnerRevoked, match="replaced by m-2"):
        await ask_token(site.deps, first.runner_id, key, 2)
    assert await ask_token(site.deps, second.runner_id, fresh, 1)
    assert "runner_replaced" in await site.list_actions()


async def test_a_lost_reply_is_answered_again_with_the_same_identity(
    site: Site, key: Ed25519PrivateKey
) -> None:
    await site.pin()
    first = await site.enrol(key)

    again = await site.enrol(key)

    assert again.runner_id == first.runner_id


async def test_a_wiped_disk_on_the_same_machine_enrols_again(
    site: Site, key: Ed25519PrivateKey
) -> None:
    await site.pin()
    first = await site.enrol(key)

    second = await site.enrol(Ed25519PrivateKey.generate())

    assert second.runner_id != first.runner_id


async def test_a_machine_whose_runner_was_revoked_does_not_come_back_by_itself(
    site: Site, key: Ed25519PrivateKey
) -> None:
    await site.pin()
    first = await site.enrol(key)
    await runners.revoke_runner(site.deps, site.user, RunnerId(first.runner_id), "suspicious")

    with pytest.raises(AttestationRefused):
        await site.enrol(Ed25519PrivateKey.generate())
    other = await site.enrol(Ed25519PrivateKey.generate(), machine="m-2")

    assert other.runner_id != first.runner_id


async def test_machines_that_replace_each_other_all_the_time_raise_an_alarm(site: Site) -> None:
    await site.pin()
    alarms = []
    for number in range(4):
        site.clock.advance(60)
        await site.enrol(Ed25519PrivateKey.generate(), machine=f"m-{number}")
        shown = await cloud_accounts.show_account(site.deps, site.user, site.install)
        alarms.append(bool(shown.alarm))

    assert alarms == [False, False, False, True]
    assert "runner_flapping" in await site.list_actions()


async def test_an_account_that_has_to_be_confirmed_waits_for_a_person(
    site: Site, key: Ed25519PrivateKey
) -> None:
    code = await site.make_code()
    row = await site.deps.db.read(lambda tx: find_install(tx, site.user.org, site.install))
    assert isinstance(row, AppInstall)

    def demand(tx: Tx) -> None:
        pins.hold_identity(tx, site.user.org, row)
        install_identities.require_confirmation(tx, site.user.org, site.install, on=True)

    await site.deps.db.write(demand)
    with pytest.raises(AttestationUnconfirmed):
        await site.enrol(key, code=code)
    with pytest.raises(AttestationUnconfirmed):
        await site.enrol(key)

    await cloud_accounts.confirm_account(site.deps, site.user, site.install, "acme-prod")
    enrolled = await site.enrol(key)

    shown = await cloud_accounts.show_account(site.deps, site.user, site.install)
    assert (shown.runner_id, shown.confirmed_by) == (enrolled.runner_id, site.user.name)


async def test_a_reset_pin_forgets_the_account_and_its_runner(
    site: Site, key: Ed25519PrivateKey
) -> None:
    await site.pin()
    first = await site.enrol(key)

    body = ResetAccount(account="new-home", reason="moved")
    await cloud_accounts.reset_account(site.deps, site.user, site.install, body)

    with pytest.raises(Unauthenticated):
        await ask_token(site.deps, first.runner_id, key, 1)
    with pytest.raises(AttestationRefused):
        await site.enrol(Ed25519PrivateKey.generate(), machine="m-2")
    moved = await site.enrol(Ed25519PrivateKey.generate(), account="new-home", machine="m-3")
    assert moved.runner_id != first.runner_id
    assert "account_reset" in await site.list_actions()


async def test_a_cloud_that_is_away_is_no_refusal(site: Site, key: Ed25519PrivateKey) -> None:
    await site.pin()
    site.attestor.unreachable = True

    with pytest.raises(AttestationUnavailable):
        await site.enrol(key)

    assert "attestation_refused" not in await site.list_actions()


async def test_a_cloud_that_the_operator_does_not_allow_gets_no_nonce(
    site: Site, key: Ed25519PrivateKey
) -> None:
    with pytest.raises(AttestationUnavailable):
        await site.ask(key, cloud="aws")


async def test_tries_of_an_install_and_of_an_address_are_limited(
    site: Site, key: Ed25519PrivateKey
) -> None:
    for _ in range(10):
        await site.ask(key)

    with pytest.raises(RateLimited, match="of this install: 10 per minute"):
        await site.ask(key)
    for number in range(49):
        await site.ask(key, install_id=f"ins_{number:026d}")
    with pytest.raises(RateLimited, match="from this address"):
        await site.ask(key, install_id="ins_" + "9" * 26)


async def test_refusals_are_audited_once_a_minute(site: Site, key: Ed25519PrivateKey) -> None:
    await site.pin()
    for _ in range(5):
        with pytest.raises(AttestationRefused):
            await site.enrol(key, nonce="a-" + "0" * 56)

    assert (await site.list_actions()).count("attestation_refused") == 1


async def test_an_install_on_another_cloud_is_not_reached(
    site: Site, world: World, key: Ed25519PrivateKey
) -> None:
    nonce = await site.ask(key, install_id=world.queue)

    with pytest.raises(AttestationRefused):
        await site.enrol(key, install_id=world.queue, nonce=nonce)


async def test_two_servers_know_which_nonces_are_used(key: Ed25519PrivateKey) -> None:
    with open_database("postgres") as url:
        first, second = (
            make_deps(SystemClock(), url=url, name=name, inline=False) for name in "ab"
        )
        try:
            user = await make_org(first)
            await make_app(first, user)
            made = await make_app_install(first, user, "shop", provision=False)
            place = {"target": Cloud.GCP, "account": "acme-prod", "region": "europe-west1"}
            moved = installs_table.update().where(installs_table.c.install_id == made.id)
            await first.db.write(lambda tx: tx.run(moved.values(place)))
            attestor = FakeAttestor()
            sites = [
                Site(
                    replace(deps, attestors=Attestors({Cloud.GCP: attestor})),
                    user,
                    InstallId(made.id),
                    attestor,
                    ManualClock(),
                )
                for deps in (first, second)
            ]
            nonce = await sites[0].ask(key)

            tries = [site.enrol(key, nonce=nonce) for site in sites]
            results = await asyncio.gather(*tries, return_exceptions=True)
        finally:
            first.db.close()
            second.db.close()

    assert sum(isinstance(result, Enrolled) for result in results) == 1
    assert sum(isinstance(result, AttestationRefused) for result in results) == 1
    assert len(attestor.claims) == 1
