"""`job` components on a real API server: run once, log copied, failures told, run again."""

import json
from dataclasses import replace
from typing import Any

from exclave.appconfig.model.kinds.other_components import Job
from exclave.domain.intents import PlanPart
from exclave.jobspec.container_jobs import make_container_job_plan
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import KubeconfigCluster
from tests.support.manifests import ManifestHarness
from tests.unit.jobspec.jobspec_kit import plan_facts

TOKEN = "canary-secret-value"


def make(annotations: dict[str, str], **changes: Any) -> str:
    """Return the objects of a component; annotations tell the test's node what happens."""
    given = {"name": "migrate", "namespace": "x", "image_url": "tool", "tag": "1", **changes}
    facts = replace(plan_facts(), cluster=KubeconfigCluster(), artifact=None)
    spec = make_container_job_plan(Job(type="job", **given), facts, PlanPart("component:migrate"))
    objects = [json.loads(text) for text in (spec.manifest or "").split("\n---\n")]
    objects[-1]["spec"]["template"]["metadata"] = {"annotations": annotations}
    return "\n---\n".join(map(json.dumps, objects))


def list_jobs(bench: ManifestHarness) -> list[str]:
    path = f"/apis/batch/v1/namespaces/{bench.namespace}/jobs"
    items: Any = bench.cluster.request("GET", path)["items"]
    return [item["metadata"]["name"] for item in items]


async def test_a_job_runs_to_its_end_and_its_log_is_copied_and_masked(
    bench: ManifestHarness,
) -> None:
    secret = {"URL": "((exclave:secret:token))"}

    applied = await bench.deploy(make({"bed/log": f"row 1\nwith {TOKEN}\n"}, env_vars=secret))

    assert (applied.outcome.state, applied.outcome.message) == ("succeeded", "")
    assert "row 1" in applied.text
    assert "with ***" in applied.text


async def test_the_same_job_again_changes_nothing_and_another_one_replaces_it(
    bench: ManifestHarness,
) -> None:
    await bench.deploy(make({}))
    [first] = list_jobs(bench)

    again = await bench.plan(make({}))
    await bench.deploy(make({}, tag="2"))

    assert again.outputs["noop"] is True
    [second] = list_jobs(bench)
    assert second != first


async def test_a_failed_job_tells_why_and_the_next_deploy_runs_it_again(
    bench: ManifestHarness,
) -> None:
    failing = make({"bed/fail": "crash"})
    failed = await bench.deploy(failing)

    planned = await bench.plan(failing)

    assert (failed.outcome.state, failed.outcome.reason) == ("failed", Reason.ROLLOUT_FAILED)
    assert "exits with 1" in failed.outcome.message
    assert "cannot reach the database: connection refused" in failed.outcome.message
    assert "connecting to db:5432" in failed.text
    [change] = (await bench.read_plan(planned))["resources"]
    assert (change["action"], change["notes"]) == (
        "replace",
        ["it has failed: it is replaced, so that it runs again"],
    )
