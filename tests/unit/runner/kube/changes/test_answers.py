"""Every answer to a dry run has its meaning; the sentences are those of a real API server."""

import pytest

from exclave.runner.kube.api.errors import ApiStatus, Cause
from exclave.runner.kube.changes.answers import Verdict, classify_answer

INVALID = "FieldValueInvalid"


def refuse(code: int, message: str, *causes: Cause, reason: str = "") -> ApiStatus:
    return ApiStatus(code, reason, message, causes)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (
            refuse(
                409,
                'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas',
                Cause("FieldManagerConflict", ".spec.replicas", 'conflict with "kubectl"'),
            ),
            Verdict.CONFLICT,
        ),
        (refuse(409, "the object has been modified"), Verdict.FAILED),
        (
            refuse(
                422,
                'Deployment.apps "web" is invalid: spec.selector: Invalid value',
                Cause(INVALID, "spec.selector", "Invalid value: {}: field is immutable"),
            ),
            Verdict.REPLACE,
        ),
        (
            refuse(
                422,
                'StatefulSet.apps "s" is invalid',
                Cause(
                    "FieldValueForbidden",
                    "spec",
                    "Forbidden: updates to statefulset spec for fields other than 'replicas'",
                ),
            ),
            Verdict.REPLACE,
        ),
        (
            refuse(
                422,
                'Service "s" is invalid',
                Cause(
                    INVALID, "spec.clusterIPs[0]", 'Invalid value: ["1"]: may not change once set'
                ),
            ),
            Verdict.REPLACE,
        ),
        (
            refuse(
                422,
                'PersistentVolumeClaim "d" is invalid',
                Cause(
                    "FieldValueForbidden",
                    "spec",
                    "Forbidden: spec is immutable after creation except resources.requests",
                ),
            ),
            Verdict.REPLACE,
        ),
        (
            refuse(
                422,
                "both",
                Cause(INVALID, "spec.selector", "field is immutable"),
                Cause("FieldValueRequired", "spec.template", "Required value"),
            ),
            Verdict.REFUSED,
        ),
        (refuse(404, 'namespaces "new" not found'), Verdict.NEW_NAMESPACE),
        (refuse(404, 'deployments.apps "web" not found'), Verdict.FAILED),
        (
            refuse(400, 'admission webhook "w.example.com" does not support dry run'),
            Verdict.NO_DRY_RUN,
        ),
        (
            refuse(500, "failed to create typed patch object (ns/web; apps/v1, Kind=Deployment)"),
            Verdict.REFUSED,
        ),
        (refuse(500, "etcdserver: leader changed"), Verdict.FAILED),
        (refuse(400, 'strict decoding error: unknown field "x"'), Verdict.REFUSED),
        (
            refuse(403, 'pods "x" is forbidden: violates PodSecurity "restricted:latest"'),
            Verdict.REFUSED,
        ),
        (refuse(403, 'admission webhook "w" denied the request: no'), Verdict.REFUSED),
        (refuse(403, 'User "u" cannot patch resource "secrets"'), Verdict.FAILED),
        (refuse(401, "Unauthorized"), Verdict.FAILED),
    ],
)
def test_an_answer_means_what_its_row_of_the_table_says(
    status: ApiStatus, verdict: Verdict
) -> None:
    assert classify_answer(status) is verdict
