"""The jobs of `job` components: one Kubernetes Job whose name follows from its content."""

import json
from dataclasses import replace
from typing import Any

from exclave.appconfig.model.kinds.other_components import Job
from exclave.domain.intents import ApplyPart, PlanPart
from exclave.jobspec.container_jobs import make_container_job_apply, make_container_job_plan
from exclave.wire.kubernetes import KubeconfigCluster
from tests.unit.jobspec.jobspec_kit import PLAN, apply_facts, plan_facts

PART = "component:db_migrate"
FACTS = replace(plan_facts(), cluster=KubeconfigCluster(), artifact=None)


def make(**changes: Any) -> list[dict[str, Any]]:
    given = {
        "name": "db_migrate",
        "namespace": "shop",
        "image_url": "registry.example/tool",
        "tag": "1.36",
        "cmd": ("sh",),
        "args": ("-c", "migrate {{x}}"),
        "deploy_timeout": "10m",
        **changes,
    }
    spec = make_container_job_plan(Job(type="job", **given), FACTS, PlanPart(PART))
    assert spec.manifest is not None
    return [json.loads(text) for text in spec.manifest.split("\n---\n")]


def test_a_job_runs_once_within_the_time_of_its_deploy() -> None:
    [job] = make()

    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["activeDeadlineSeconds"] == 600
    assert "ttlSecondsAfterFinished" not in job["spec"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/tool:1.36"
    assert container["command"] == ["sh"]
    assert container["args"] == ["-c", f"migrate <{PART}: args[1]>"]


def test_the_same_content_has_the_same_name_and_other_content_another() -> None:
    names = [
        make()[0]["metadata"]["name"],
        make()[0]["metadata"]["name"],
        make(tag="1.37")[0]["metadata"]["name"],
        make(env_vars={"A": "1"})[0]["metadata"]["name"],
    ]

    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert names[0].startswith("db-migrate-")


def test_a_long_name_is_cut_so_that_it_fits_a_label() -> None:
    [job] = make(name="m" * 62)

    assert len(job["metadata"]["name"]) == 63


def test_secret_variables_come_from_a_secret_and_plain_ones_do_not() -> None:
    hidden = "postgres://((exclave:secret:password))@db"

    secret, job = make(env_vars={"MODE": "once", "URL": hidden})

    name = job["metadata"]["name"]
    assert (secret["kind"], secret["metadata"]["name"]) == ("Secret", name)
    assert secret["stringData"] == {"URL": hidden}
    assert job["spec"]["template"]["spec"]["containers"][0]["env"] == [
        {"name": "MODE", "value": "once"},
        {"name": "URL", "valueFrom": {"secretKeyRef": {"name": name, "key": "URL"}}},
    ]


def test_an_apply_and_a_teardown_need_no_text() -> None:
    definition = Job(type="job", name="once", namespace="shop", image_url="a", tag="1")
    applied = replace(apply_facts(), cluster=KubeconfigCluster())

    apply = make_container_job_apply(definition, applied, ApplyPart(PART, "once.plan"))
    teardown = make_container_job_plan(definition, FACTS, PlanPart(PART, destroy=True))

    assert (apply.manifest, apply.plan) == (None, PLAN)
    assert (teardown.manifest, teardown.destroy) == (None, True)
