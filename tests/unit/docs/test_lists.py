"""Pages that list what the code has list all of it: kinds, states, workflow types, timings."""

import re
from dataclasses import fields

import pytest

from exclave.domain.capabilities import KINDS
from exclave.domain.identity import QueueKind
from exclave.domain.jobs import JobKind, JobState
from exclave.domain.lanes import LaneState
from exclave.domain.presence import PresenceState
from exclave.domain.timings import Timings
from exclave.domain.workflows import StepKind, StepState, WorkflowKind
from exclave.wire.workflows import MAX_STEPS
from tests.unit.docs.pages import ROOT, Page

JOBS = Page(ROOT / "docs/concepts/jobs-and-lanes.md")
WORKFLOWS = Page(ROOT / "docs/concepts/workflows.md")
TYPES = Page(ROOT / "docs/reference/workflow-types.md")
RUNNERS_OF = {
    "all runners": set(QueueKind),
    "runners of installs": {QueueKind.INSTALL},
    "build runners": {QueueKind.BUILD},
}


def test_the_page_on_jobs_lists_every_kind_and_who_runs_it() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", JOBS.section("Kinds"), re.MULTILINE)

    assert {kind: RUNNERS_OF[where] for kind, where in rows} == {
        kind: {queue for queue in QueueKind if kind in KINDS[queue]} for kind in JobKind
    }


def test_the_page_on_jobs_shows_every_state() -> None:
    (picture,) = (fence for fence in JOBS.fences("text") if "queued" in fence)

    assert set(re.findall(r"[a-z]+", picture)) >= set(JobState)


def test_the_page_on_jobs_lists_every_state_of_a_lane() -> None:
    assert JOBS.first_column("Lanes") == list(LaneState)


def test_the_page_on_workflows_lists_every_kind_and_state_of_a_step() -> None:
    named = WORKFLOWS.first_column("Steps")

    assert sorted(named) == sorted([*StepKind, *StepState])


def test_the_page_on_workflow_types_lists_every_type() -> None:
    assert sorted(TYPES.first_column("Workflow types")) == sorted(WorkflowKind)


def test_the_page_on_runners_names_every_state_of_presence() -> None:
    page = Page(ROOT / "docs/concepts/runners.md")

    assert [state for state in PresenceState if f"`{state}`" not in page.text] == []


@pytest.mark.parametrize(
    ("page", "sentence", "name"),
    [
        ("docs/architecture.md", r"held open, ([\d.]+) s by default", "poll_hold_s"),
        ("docs/architecture.md", r"the runner renews every ([\d.]+) s", "renew_s"),
        ("docs/concepts/jobs-and-lanes.md", r"start within ([\d.]+) s, the offer is", "offer_s"),
        (
            "docs/concepts/jobs-and-lanes.md",
            r"offers it again after ([\d.]+) s",
            "lost_read_only_s",
        ),
        ("docs/concepts/jobs-and-lanes.md", r"calls it `lost` after ([\d.]+) s", "lost_mutating_s"),
    ],
)
def test_a_time_that_a_page_tells_is_the_default(page: str, sentence: str, name: str) -> None:
    found = re.search(sentence, Page(ROOT / page).text)

    assert name in {field.name for field in fields(Timings)}
    assert found is not None
    assert float(found[1]) == getattr(Timings(), name)


def test_the_page_on_writing_workflows_names_the_limit_of_steps() -> None:
    page = Page(ROOT / "docs/how-to/write-a-workflow.md")

    assert re.findall(r"at most (\d+) steps", page.text) == [str(MAX_STEPS)]
