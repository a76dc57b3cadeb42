"""Errors of terraform as reasons that people and programs can act on."""

import pytest

from exclave.base.json_values import Json
from exclave.runner.terraform.diagnostics import CLASSES, classify, explain
from exclave.runner.terraform.messages import Diagnostic, read_diagnostic
from exclave.wire.jobs import Reason

CASES = [
    ("Saved plan is stale", "plan_stale"),
    ("Error acquiring the state lock: HTTP remote state already locked: ID=1", "lock_held"),
    ("Failed to save state\nError saving state: HTTP error: 409", "state_refused"),
    ("Error: creating EC2 Instance: VcpuLimitExceeded: You have requested", "quota"),
    ("googleapi: Error 403: Quota exceeded for quota metric", "quota"),
    ("ThrottlingException: Rate exceeded", "quota"),
    ("QuotaExceeded: Operation could not be completed as it results in exceeding approved quota",
     "quota"),
    ("creating S3 Bucket: https response error StatusCode: 403, AccessDenied", "access_denied"),
    ("UnauthorizedOperation: You are not authorized to perform this operation", "access_denied"),
    ("No valid credential sources found", "access_denied"),
    ("ExpiredToken: The security token included in the request is expired", "access_denied"),
    ("AuthorizationFailed: The client does not have authorization", "access_denied"),
    ("Error 403: Permission denied on resource project", "access_denied"),
    ("waiting for RDS Cluster: timeout while waiting for state to become 'available'", "timeout"),
    ("Failed to query available provider packages\nCould not retrieve the list",
     "provider_unavailable"),
    ("Failed to install provider\nError while installing hashicorp/aws", "provider_unavailable"),
    ("Inconsistent dependency lock file", "provider_unavailable"),
    ("Failed to download module\nCould not download module", "provider_unavailable"),
    ("Post https://x: dial tcp: lookup x: no such host", "network"),
    ("connection reset by peer", "network"),
    ("x509: certificate signed by unknown authority", "network"),
    ("Unsupported argument\nAn argument named nope is not expected here", "syntax"),
    ("No value for required variable", "syntax"),
    ("Reference to undeclared resource", "syntax"),
    ("Invalid value for variable", "syntax"),
    ("Something nobody has seen before", "exit_code"),
    ("", "exit_code"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), CASES)
def test_texts_are_classified(text: str, reason: str) -> None:
    found, hint = classify(text)

    assert found == reason
    assert bool(hint) == (reason != "exit_code")


def test_every_class_has_a_case_and_a_hint() -> None:
    assert {family.reason for family in CLASSES} <= {reason for _, reason in CASES}
    assert all(family.hint.endswith(".") for family in CLASSES)


def test_the_specific_error_explains_more_than_the_first() -> None:
    errors = [
        Diagnostic("error", "It did not work"),
        Diagnostic("error", "creating bucket", "AccessDenied: no", address="aws_s3_bucket.a"),
    ]

    reason, message = explain("apply", errors, "")

    assert reason is Reason.ACCESS_DENIED
    assert message == (
        "`apply` failed: Error: It did not work\nError: creating bucket\n  with aws_s3_bucket.a\n"
        "  AccessDenied: no\nThe credentials of the runner may not do this: extend its role, or"
        " renew them."
    )


def test_plain_output_is_shown_from_the_error_on() -> None:
    output = (
        "Initializing...\n╷\n│ Error: Failed to query available provider packages\n│ \n│ why\n╵"
    )

    reason, message = explain("init", (), output)

    assert reason is Reason.PROVIDER_UNAVAILABLE
    assert "Initializing" not in message
    assert "Error: Failed to query available provider packages\nwhy" in message


def test_many_errors_are_counted() -> None:
    errors = [Diagnostic("error", f"number {n}") for n in range(8)]

    _, message = explain("validate", errors, "", Reason.SYNTAX)

    assert "number 4" in message
    assert "number 5" not in message
    assert "and 3 more errors" in message


@pytest.mark.parametrize("told", [None, [], "x", {}, {"range": 3, "snippet": 4, "detail": None}])
def test_odd_diagnostics_are_read(told: Json) -> None:
    assert read_diagnostic(told).summary == "unknown"
