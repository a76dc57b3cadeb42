"""Plans and orphans as people read them."""

import json

import pytest

from tests.unit.cli import samples
from tests.unit.cli.fake_control import (
    INS,
    JOB,
    WFL,
    Cli,
    FakeControl,
    event,
    make_id,
)
from tests.unit.cli.verbs_terraform import objects_plan, orphan, plan, planned_workflow

WHOLE = """\
Changed outside of Terraform:
  t.changed will be changed

+ t.new will be created
  + id        (known after apply)
  + size      3
    password  (sensitive)

~ t.changed will be changed
  ~ tags.a  "1" → "2"
  - gone    "x"

± t.swap must be replaced: it cannot be changed in place
  ~ zone  "a" → "b"  # forces replacement

- t.old will be destroyed
  - size  1

Outputs:
  ~ url  "a" → (known after apply)
  + key  (sensitive)

Policies:
  warn cost: it is dear

Plan: 1 to add, 1 to change, 1 to replace, 1 to destroy.
"""


def test_a_plan_reads_from_top_to_bottom(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", f"/v1/jobs/{JOB}/attachments/plan.json", plan())

    ran = cli(*f"jobs plan {JOB}".split())

    assert (ran.code, ran.out) == (0, WHOLE)


OBJECTS = """\
~ apps/Deployment/shop/web will be changed
  ~ spec.replicas  5 → 2  # ignored in scans
  ! takes over spec.replicas from kubectl (scale)
    (in a new namespace: not checked by the server)

▸ batch/Job/shop/migrate will be run: pre-install, pre-upgrade

. PersistentVolumeClaim/shop/data stays
    (it holds data)

Warning: spec.replicas has two owners

Note: the namespace `shop` is created

Images from outside of the app:
  docker.io/library/redis:7 (not pinned)

Plan: 1 to change, 1 to run, 1 to keep.
"""


def test_a_plan_of_objects_says_whose_fields_are_taken_and_what_stays(
    cli: Cli, fake: FakeControl
) -> None:
    fake.answer("GET", f"/v1/jobs/{JOB}/attachments/plan.json", objects_plan())

    assert cli(*f"jobs plan {JOB}".split()).out == OBJECTS


def test_drift_of_objects_is_not_put_down_to_terraform(cli: Cli, fake: FakeControl) -> None:
    document = objects_plan()
    changed = {**document, "drift": document["resources"][:1]}
    fake.answer("GET", f"/v1/jobs/{JOB}/attachments/plan.json", changed)

    shown = cli(*f"jobs plan {JOB}".split()).out

    assert shown.startswith(
        "Changed in the cluster by others:\n  apps/Deployment/shop/web will be changed\n"
    )


@pytest.mark.parametrize(
    ("summary", "text"),
    [
        ({}, "Plan: nothing to do.\n"),
        ({"outputs": 2}, "Plan: only outputs change.\n"),
        ({"import": 1, "move": 2}, "Plan: 1 to import, 2 moved.\n"),
    ],
)
def test_small_plans_are_one_line(
    cli: Cli, fake: FakeControl, summary: dict[str, int], text: str
) -> None:
    fake.answer("GET", f"/v1/jobs/{JOB}/attachments/plan.json", {"summary": summary})

    assert cli(*f"jobs plan {JOB}".split()).out == text


def test_all_plans_of_a_workflow_are_shown_under_their_steps(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", f"/v1/workflows/{WFL}", planned_workflow())
    fake.answer("GET", f"/v1/jobs/{JOB}/attachments/plan.json", plan())

    assert cli(*f"workflows plan {WFL}".split()).out == f"plan\n{WHOLE}"


def test_a_workflow_without_plans_says_so(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", f"/v1/workflows/{WFL}", samples.workflow(samples.step("one")))

    none = cli(*f"workflows plan {WFL}".split())
    pending = cli(*f"workflows plan {WFL} one".split())
    unknown = cli(*f"workflows plan {WFL} nothing".split())

    assert (none.code, pending.code, unknown.code) == (1, 1, 1)
    assert "no step of the workflow has made a plan yet" in none.err
    assert "`one` has no plan to show: it is pending" in pending.err
    assert "no step `nothing`" in unknown.err


def test_a_plan_can_be_waited_for(cli: Cli, fake: FakeControl) -> None:
    running = samples.workflow(samples.plan("running"), samples.gate("pending"))
    planned = planned_workflow() | {"revision": 2}
    fake.answer("GET", f"/v1/workflows/{WFL}", running)
    fake.stream(f"/v1/workflows/{WFL}/stream", event("workflow", json.dumps(planned), "2"))
    fake.answer("GET", f"/v1/jobs/{JOB}/attachments/plan.json", plan())

    ran = cli(*f"workflows plan {WFL} plan --wait".split())
    nothing = cli(*f"workflows plan {WFL} --wait".split())

    assert (ran.code, ran.out) == (0, WHOLE)
    assert (nothing.code, "--wait needs a STEP" in nothing.err) == (2, True)


def test_whoever_is_asked_to_approve_sees_the_plan(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", f"/v1/workflows/{WFL}", planned_workflow())
    fake.answer("GET", f"/v1/jobs/{JOB}/attachments/plan.json", plan())

    ran = cli(*f"workflows approve {WFL} ok".split(), can_ask=True, stdin="n\n")

    assert f"after:\n  plan\n\n{WHOLE}\nApprove this? [y/N]: " in ran.err


def test_the_workflow_of_an_install_is_not_one_that_a_schedule_began(
    cli: Cli, fake: FakeControl
) -> None:
    other = make_id("wfl", 7)
    tick = samples.workflow() | {"id": other, "created_by": "schedule"}
    mine = samples.workflow()
    fake.answer("GET", "/v1/workflows", samples.page(tick, mine))
    fake.answer("GET", "/v1/workflows", samples.page(tick))
    fake.answer("GET", f"/v1/workflows/{WFL}", samples.workflow())
    fake.answer("GET", f"/v1/workflows/{other}", samples.workflow() | {"id": other})

    ran = cli("workflows", "get", INS)
    only = cli("workflows", "get", INS)

    assert f"id       {WFL}\n" in ran.out
    assert f"id       {other}\n" in only.out


def test_orphans_say_what_is_certain(cli: Cli, fake: FakeControl) -> None:
    orphans = [
        orphan(certainty="unknown", id="", import_block="", address="a.b"),
        orphan(id="", import_block=""),
    ]
    fake.answer("GET", f"/v1/installs/{INS}/orphans", {"orphans": orphans})

    ran = cli(*f"installs orphans {INS} --all".split())

    assert "a.b, by job" in ran.out
    assert "check whether it exists" in ran.out
    assert "its id is not known" in ran.out
    assert fake.requests[-1].url.params["all"] == "true"
