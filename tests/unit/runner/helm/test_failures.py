"""What Helm says, and the reason that it is for a job."""

import pytest

from exclave.runner.helm.failures import explain_helm
from exclave.runner.jobs.context import Captured
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
        (
            'Error: no matches for kind "Wheel" in version "a/v1"\nensure CRDs are installed first',
            Reason.OBJECT_REFUSED,
        ),
        (
            'Error: a.yaml:3:9\n  executing "a.yaml" at <.Values.a.b>:\n    nil pointer',
            Reason.SYNTAX,
        ),
        (
            "Error: configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no",
            Reason.OBJECT_REFUSED,
        ),
        ('Error: pods "a" is forbidden: exceeded quota: few, requested: pods=1', Reason.QUOTA),
        ("Error: server-side apply failed for object a/b /v1: unheard of", Reason.OBJECT_REFUSED),
        ("Error: something new", Reason.EXIT_CODE),
    ],
)
def test_the_words_decide_because_the_exit_code_is_always_1(printed: str, reason: Reason) -> None:
    failure = explain_helm("upgrade", Captured(1, "", f"level=WARN msg=noise\n{printed}"), str)

    assert failure.reason is reason
    assert "noise" not in failure.message
    assert "\n" not in failure.message


def test_a_helm_that_was_killed_is_told_as_such() -> None:
    failure = explain_helm("upgrade", Captured(-9, "", ""), str)

    assert failure.reason is Reason.EXIT_CODE
    assert "`helm upgrade` was ended by SIGKILL" in failure.message
