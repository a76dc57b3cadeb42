"""What Helm says, and the reason that it is for a job."""

import pytest

from exclave.runner.helm.failures import explain_helm
from exclave.wire.jobs import Reason


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (
            "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
            Reason.RELEASE_BUSY,
        ),
        ("Error: UPGRADE FAILED: pre-upgrade hooks failed: job web failed", Reason.HOOK_FAILED),
        ("Error: execution error at (demo/a.yaml:1:3): password is required", Reason.SYNTAX),
        ('Error: secrets is forbidden: User "x" cannot list', Reason.ACCESS_DENIED),
        ("Error: Kubernetes cluster unreachable: connection refused", Reason.CLUSTER_UNREACHABLE),
        ("Error: Secret is invalid: Too long: must have at most 1048576", Reason.OBJECT_REFUSED),
        ("Error: something new", Reason.EXIT_CODE),
    ],
)
def test_the_words_decide_because_the_exit_code_is_always_1(printed: str, reason: Reason) -> None:
    failure = explain_helm("upgrade", f"level=WARN msg=noise\n{printed}", str)

    assert failure.reason is reason
    assert "noise" not in failure.message
