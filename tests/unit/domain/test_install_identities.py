"""Who may enrol as the runner of an install, decided from a proof and a pin."""

from dataclasses import replace

import pytest

from exclave.domain.identity import OrgId
from exclave.domain.install_identities import (
    InstallIdentity,
    PinnedBy,
    Proof,
    Verdict,
    decide_enrolment,
    name_runner,
)
from exclave.domain.runner_principals import (
    is_runner,
    name_aws_role,
    name_gcp_account,
    name_gcp_email,
)
from exclave.domain.stacks import Cloud

INSTALL = "ins_" + "0" * 26
ACCOUNT = "123456789012"
PROOF = Proof(Cloud.AWS, ACCOUNT, name_aws_role(INSTALL), "i-1", "eu-west-1")
NEW = InstallIdentity(
    org_id=OrgId("org"), install_id=INSTALL, cloud=Cloud.AWS, region="eu-west-1", account="",
    tenant="", principal="", pinned_by=None, pinned_at=None, must_confirm=False,
    confirmed_by=None, confirmed_at=None, runner_id=None, last_machine="", last_at=None, alarm="",
    alarm_at=None,
)  # fmt: skip
PINNED = NEW._replace(account=ACCOUNT, pinned_by=PinnedBy.CREATION)


@pytest.mark.parametrize(
    ("identity", "proof", "has_code", "verdict"),
    [
        (PINNED, PROOF, False, Verdict.ACCEPTED),
        (NEW, PROOF, True, Verdict.ACCEPTED),
        (NEW, PROOF, False, Verdict.CODE_NEEDED),
        (PINNED, replace(PROOF, account="9" * 12), True, Verdict.FOREIGN_ACCOUNT),
        (PINNED, replace(PROOF, region="us-east-1"), True, Verdict.FOREIGN_REGION),
        (PINNED, replace(PROOF, region=""), False, Verdict.ACCEPTED),
        (PINNED, replace(PROOF, principal="admin"), False, Verdict.FOREIGN_PRINCIPAL),
        (NEW, replace(PROOF, principal="admin"), True, Verdict.FOREIGN_PRINCIPAL),
        (PINNED._replace(tenant="t"), PROOF, False, Verdict.FOREIGN_ACCOUNT),
        (PINNED._replace(principal="older"), PROOF, False, Verdict.FOREIGN_PRINCIPAL),
    ],
)
def test_only_the_runner_of_the_pinned_account_is_accepted(
    identity: InstallIdentity, proof: Proof, has_code: bool, verdict: Verdict
) -> None:
    assert decide_enrolment(identity, proof, has_code=has_code) is verdict


@pytest.mark.parametrize(
    ("cloud", "principal", "expected"),
    [
        (Cloud.AWS, f"exclave-{INSTALL}-runner", True),
        (Cloud.AWS, f"exclave-{INSTALL}-provision", False),
        (Cloud.GCP, name_gcp_email(INSTALL, "acme-prod"), True),
        (Cloud.GCP, name_gcp_email(INSTALL, "evil-prod"), False),
        (Cloud.AZURE, f"/x/userassignedidentities/exclave-{INSTALL}-runner", True),
        (Cloud.AZURE, f"/x/userassignedidentities/exclave-{INSTALL}-runner/y", False),
        (Cloud.LOCAL, "anything", False),
    ],
)
def test_the_name_of_the_runner_follows_from_the_install(
    cloud: Cloud, principal: str, expected: bool
) -> None:
    assert is_runner(cloud, INSTALL, "acme-prod", principal) is expected


def test_a_service_account_has_at_most_thirty_characters() -> None:
    assert len(name_gcp_account("ins_" + "z" * 26)) <= 30


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("i-0123456789abcdef0", "i-0123456789abcdef0"),
        ("4242", "4242"),
        ("A1B2.C3", "a1b2-c3"),
        ("x" * 80, "x" * 63),
        ("..", "machine"),
    ],
)
def test_a_runner_is_named_after_its_machine(machine: str, name: str) -> None:
    assert name_runner(replace(PROOF, machine=machine)) == name
