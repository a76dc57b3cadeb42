"""Reviews of objects: their form, and how the answers of a policy become findings."""

import pytest

from exclave.base.json_values import Json, JsonObject
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.reviews import (
    MOST_FINDINGS,
    ReviewedObject,
    list_secret_values,
    make_reviews,
    read_review_findings,
)
from exclave.wire.plans import PlanAction

LIVE: JsonObject = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"replicas": 1},
}
WANTED: JsonObject = {**LIVE, "spec": {"replicas": 2}}


def read(answers: Json, reviews: int = 2) -> list[tuple[str, str, str]]:
    objects = [ReviewedObject("create", None, WANTED)] * reviews
    findings = read_review_findings("p", answers, make_reviews(objects), lambda text: text)
    return [(finding.level, finding.resource, finding.message) for finding in findings]


def test_a_change_is_reviewed_with_the_fields_of_an_admission_review() -> None:
    [review] = make_reviews([ReviewedObject("update", LIVE, WANTED)])

    assert review == {
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "name": "web",
        "namespace": "shop",
        "operation": "UPDATE",
        "object": WANTED,
        "oldObject": LIVE,
        "dryRun": True,
    }


@pytest.mark.parametrize(
    ("action", "operation"),
    [
        ("create", "CREATE"),
        ("run", "CREATE"),
        ("update", "UPDATE"),
        ("replace", "UPDATE"),
        ("no-op", "UPDATE"),
        ("delete", "DELETE"),
    ],
)
def test_every_action_has_an_operation(action: PlanAction, operation: str) -> None:
    [review] = make_reviews([ReviewedObject(action, LIVE, WANTED)])

    assert review["operation"] == operation


def test_the_object_of_a_removal_is_the_one_that_is_removed() -> None:
    [review] = make_reviews([ReviewedObject("delete", LIVE, None)])

    assert (review["object"], review["oldObject"], review["name"]) == (LIVE, LIVE, "web")


def test_an_object_that_only_stays_is_not_reviewed() -> None:
    assert make_reviews([ReviewedObject("keep", LIVE, None)]) == []


def test_an_object_of_the_core_group_and_of_no_namespace_has_empty_fields() -> None:
    value: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}

    [review] = make_reviews([ReviewedObject("create", None, value)])

    assert review["kind"] == {"group": "", "version": "v1", "kind": "Namespace"}
    assert (review["namespace"], review["oldObject"]) == ("", None)


def test_findings_name_their_object() -> None:
    answers: Json = {"deny": {"0": ["no"], "1": []}, "warn": {"0": [], "1": [{"msg": "odd"}]}}

    assert read(answers) == [
        ("deny", "apps/Deployment/shop/web", "no"),
        ("warn", "apps/Deployment/shop/web", "odd"),
    ]


def test_the_same_message_about_many_objects_is_one_finding() -> None:
    answers: Json = {"deny": {str(at): ["no latest"] for at in range(5)}}

    assert read(answers, 5) == [
        ("deny", "apps/Deployment/shop/web", "no latest (and 4 more objects)")
    ]


def test_findings_are_cut_and_the_rest_counted() -> None:
    answers: Json = {"pass": {"0": [f"fine {at}" for at in range(MOST_FINDINGS + 7)]}}

    findings = read(answers, 1)

    assert len(findings) == MOST_FINDINGS + 1
    assert findings[-1] == ("pass", "", "and 7 more findings")


@pytest.mark.parametrize("answers", [None, {}, {"deny": {"0": []}}, {"deny": []}, "text"])
def test_a_policy_that_decides_nothing_about_an_object_fails(answers: Json) -> None:
    with pytest.raises(WorkFailed, match="`p` decides nothing about apps/Deployment/shop/web"):
        read(answers)


def test_a_plan_without_objects_needs_no_answer() -> None:
    assert read({}, 0) == []


def test_values_of_secrets_are_found_decoded_and_binary_ones_as_they_are_stored() -> None:
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"a": "aHVudGVyMjIyMjI=", "binary": "/////////w==", "short": "MQ==", "bad": 7},
        "stringData": {"b": "plain-text"},
    }

    values = [value.reveal() for value in list_secret_values([secret, WANTED])]

    assert values == ["/////////w==", "hunter22222", "plain-text"]
