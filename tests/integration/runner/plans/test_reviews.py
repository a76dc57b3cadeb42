"""Policies on objects with the real opa: every shape of policy, many objects, hostile ones."""

import base64
import json
from pathlib import Path

import pytest

from exclave.base.json_values import Json, JsonObject
from exclave.runner.jobs.context import JobContext, JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import JobRun
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.policy_evaluation import DEFAULT_LIMITS, PolicyLimits
from exclave.runner.plans.reviews import ReviewedObject, check_reviews
from exclave.wire.plans import PlanAction, PlanDocument, PlanSummary
from exclave.wire.spec_fields import RegoPolicy
from exclave.wire.specs import NoopSpec
from tests.support.tools import need_tool
from tests.unit.runner.work_kit import CLOCK, NO_UPLINK, ExecutionHarness, make_dispatch

LIMITS = """
package nuon

deny contains msg if {
  input.review.kind.kind == "Deployment"
  some container in input.review.object.spec.template.spec.containers
  not container.resources.limits.memory
  msg := sprintf("%s/%s: container %s has no memory limit",
    [input.review.namespace, input.review.name, container.name])
}
"""
OLD_LABELS = """
package nuon

import future.keywords.in

deny[msg] {
  required := {"team"}
  provided := {label | input.review.object.metadata.labels[label]}
  missing := required - provided
  count(missing) > 0
  msg := sprintf("labels are missing: %v", [missing])
}

warn[{"msg": msg, "severity": "low"}] {
  input.review.operation == "DELETE"
  msg := sprintf("%v %v is removed", [input.review.kind.kind, input.review.name])
}
"""
PASS_ONLY = """
package nuon

pass contains msg if {
  input.review.kind.group == "apps"
  endswith(input.review.kind.kind, "Deployment")
  msg := sprintf("%s keeps %d replicas", [input.review.name, input.review.object.spec.replicas])
}
"""
COMPLETE = """
package nuon

default deny := false

deny if input.review.object.spec.hostNetwork
"""
CHANGES = """
package nuon

deny contains {"message": msg} if {
  input.review.operation == "UPDATE"
  input.review.oldObject.spec.replicas > input.review.object.spec.replicas
  msg := "replicas may not shrink"
}

warn contains msg if {
  input.plan.summary.destroy > 0
  msg := sprintf("%d objects are destroyed", [input.plan.summary.destroy])
}
"""
HELPERS = """
package nuon

import rego.v1

containers contains container if some container in input.review.object.spec.template.spec.containers

images := {container.image | some container in containers}

deny contains msg if {
  some image in images
  endswith(image, ":latest")
  msg := concat("", ["do not use ", image])
}
"""


def make_object(
    kind: str, name: str, spec: JsonObject | None = None, **labels: str
) -> dict[str, Json]:
    metadata: JsonObject = {"name": name, "namespace": "shop", "labels": labels}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec or {}}


def make_deployment(name: str, **changes: object) -> JsonObject:
    container: dict[str, object] = {"name": "app", "image": "app:1", **changes}
    value = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop", "labels": {"team": "a"}},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}},
    }
    parsed: JsonObject = json.loads(json.dumps(value))
    return parsed


@pytest.fixture
def opa() -> str:
    return str(need_tool("opa"))


@pytest.fixture
def bench(tmp_path: Path) -> ExecutionHarness:
    return ExecutionHarness(tmp_path)


@pytest.fixture
def context(bench: ExecutionHarness, opa: str) -> JobContext:
    """A job that begins when opa is there: where it has to be built, that takes minutes."""
    return open_context(
        JobRun(make_dispatch(NoopSpec()), bench.folder, NO_UPLINK),
        bench.log,
        bench.stop,
        clock=CLOCK,
        children=ChildSettings(),
        limits=JobLimits(60.0, grace_s=1.0, keep_free_bytes=0),
    )


def make(action: PlanAction, wanted: JsonObject, live: JsonObject | None = None) -> ReviewedObject:
    return ReviewedObject(action, live, wanted)


async def check(
    context: JobContext,
    opa: str,
    rego: str,
    *objects: ReviewedObject,
    document: PlanDocument | None = None,
    limits: PolicyLimits = DEFAULT_LIMITS,
) -> list[tuple[str, str, str]]:
    policies = [RegoPolicy(name="rule", rego=rego)]
    findings = await check_reviews(
        context, opa, policies, objects, document or PlanDocument(), limits=limits
    )
    return [(finding.level, finding.resource, finding.message) for finding in findings]


@pytest.mark.parametrize(
    ("rego", "expected"),
    [
        (
            LIMITS,
            [
                (
                    "deny",
                    "apps/Deployment/shop/web",
                    "shop/web: container app has no memory limit",
                )
            ],
        ),
        (OLD_LABELS, [("deny", "ConfigMap/shop/settings", 'labels are missing: {"team"}')]),
        (PASS_ONLY, [("pass", "apps/Deployment/shop/web", "web keeps 2 replicas")]),
        (COMPLETE, [("deny", "Pod/shop/bare", "it says no, without a message")]),
        (HELPERS, [("deny", "apps/Deployment/shop/web", "do not use app:latest")]),
    ],
)
async def test_every_shape_of_policy_is_evaluated_object_by_object(
    context: JobContext, opa: str, rego: str, expected: list[tuple[str, str, str]]
) -> None:
    found = await check(
        context,
        opa,
        rego,
        make("create", make_deployment("web", image="app:latest")),
        make("create", make_object("ConfigMap", "settings")),
        make("create", make_object("Pod", "bare", {"hostNetwork": True}, team="a")),
    )

    assert found == expected


async def test_a_policy_compares_with_the_live_object_and_sees_the_plan(
    context: JobContext, opa: str
) -> None:
    live = make_object("Widget", "w", {"replicas": 3})
    wanted = make_object("Widget", "w", {"replicas": 1})
    document = PlanDocument(summary=PlanSummary(change=1, destroy=4))

    found = await check(context, opa, CHANGES, make("update", wanted, live), document=document)

    assert found == [
        ("deny", "Widget/shop/w", "replicas may not shrink"),
        ("warn", "Widget/shop/w", "4 objects are destroyed"),
    ]


async def test_a_removal_is_reviewed_with_the_object_that_goes(
    context: JobContext, opa: str
) -> None:
    gone = ReviewedObject("delete", make_object("ConfigMap", "old", team="a"), None)

    found = await check(context, opa, OLD_LABELS, gone)

    assert found == [("warn", "ConfigMap/shop/old", "ConfigMap old is removed")]


async def test_300_objects_are_reviewed_by_one_process(
    context: JobContext, opa: str, tmp_path: Path
) -> None:
    counting = tmp_path / "counting-opa"
    counting.write_text(f'#!/bin/sh\necho one >> {tmp_path}/calls\nexec {opa} "$@"\n')
    counting.chmod(0o755)
    objects = [make("create", make_deployment(f"web-{at}")) for at in range(300)]

    found = await check(context, str(counting), LIMITS, *objects)

    assert (tmp_path / "calls").read_text() == "one\n"
    assert [message for _, _, message in found[:2]] == [
        "shop/web-0: container app has no memory limit",
        "shop/web-1: container app has no memory limit",
    ]
    assert found[-1] == ("deny", "", "and 100 more findings")


async def test_data_of_secrets_is_seen_by_policies_and_shown_to_nobody(
    context: JobContext, opa: str, bench: ExecutionHarness
) -> None:
    stored = base64.b64encode(b"correct-horse").decode()
    secret = {**make_object("Secret", "login"), "data": {"password": stored}}
    rego = """
package nuon

deny contains msg if {
  stored := input.review.object.data.password
  print("seen", stored)
  msg := sprintf("%s is %s", [stored, base64.decode(stored)])
}
"""

    found = await check(context, opa, rego, make("create", secret))

    assert found == [("deny", "Secret/shop/login", "*** is ***")]
    assert "correct-horse" not in bench.read_log()
    assert stored not in bench.read_log()
    assert "policy rule: deny: Secret/shop/login: *** is ***" in bench.read_log()
    assert not (context.workspace.folder / "policies" / "input.json").exists()


@pytest.mark.parametrize(
    ("rego", "words"),
    [
        ("package nuon\n\ndeny contains {", "cannot be evaluated: line"),
        ("package other\n\ndeny := true", "decides nothing about apps/Deployment/shop/web"),
        ("package nuon\n\ndeny if input.review.name == 7", "decides nothing about"),
        ("package nuon\n\ndeny contains msg if { msg := nothing(1) }", "undefined function"),
        ("package nuon\n\ndeny := 1\n\ndeny := 2", "cannot be evaluated"),
        ("package nuon\n\ndeny contains deny", "cannot be evaluated"),
        ("", "cannot be evaluated"),
    ],
)
async def test_a_broken_policy_never_passes(
    context: JobContext, opa: str, rego: str, words: str
) -> None:
    with pytest.raises(WorkFailed, match="`rule`") as failure:
        await check(context, opa, rego, make("create", make_deployment("web")))

    assert (failure.value.reason, words in failure.value.message) == ("syntax", True)
    assert not (context.workspace.folder / "policies" / "input.json").exists()


async def test_an_endless_policy_is_ended_and_never_passes(context: JobContext, opa: str) -> None:
    rego = """
package nuon

deny contains "never" if {
  some one in numbers.range(1, 100000)
  some other in numbers.range(1, 100000)
  one * other == -1
}
"""

    with pytest.raises(WorkFailed, match="`rule` cannot be evaluated: it did not end within 1 s"):
        await check(
            context,
            opa,
            rego,
            make("create", make_deployment("web")),
            limits=PolicyLimits(seconds=1),
        )


async def test_a_policy_that_answers_without_end_never_passes(
    context: JobContext, opa: str
) -> None:
    rego = """
package nuon

pass contains msg if {
  some at in numbers.range(1, 5000)
  msg := sprintf("%d %s", [at, concat("", [text | some _ in numbers.range(1, 100); text := "x"])])
}
"""

    with pytest.raises(WorkFailed, match="`rule` cannot be evaluated: it answers more than 64 KiB"):
        await check(
            context,
            opa,
            rego,
            make("create", make_deployment("web")),
            limits=PolicyLimits(answer_bytes=64 << 10),
        )


async def test_a_plan_without_objects_passes_every_policy_that_can_be_read(
    context: JobContext, opa: str
) -> None:
    assert await check(context, opa, LIMITS) == []
