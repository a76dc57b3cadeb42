"""Stored intents: what older servers wrote is read, and written again byte for byte."""

import json

import pytest

from exclave.base.json_values import Json, JsonObject
from exclave.domain.intents import (
    ApplyPart,
    AwaitBuilds,
    AwaitEvent,
    AwaitRunner,
    AwaitStack,
    Intent,
    PlanPart,
    RemoveSecrets,
    RunAction,
    ScanPart,
    StoredPlan,
    SyncPart,
    SyncSecrets,
    WorkflowValues,
    read_intent,
    with_delay,
)

RECORDED: list[tuple[str, Intent]] = [
    ('"do": "builds"', AwaitBuilds()),
    ('"do": "stack"', AwaitStack()),
    ('"do": "runner"', AwaitRunner()),
    ('"do": "secrets"', SyncSecrets()),
    ('"do": "secrets", "adopt": true', SyncSecrets(adopt=True)),
    ('"do": "secrets-remove"', RemoveSecrets()),
    ('"do": "event"', AwaitEvent()),
    (
        (
            '"do": "plan", "auto": false, "part": "component:web", "component": "web", "destroy": false, '
            '"rollback_to": {"execution": "exe_1", "digest": "sha256:1", "config": "cfg_1"}, '
            '"take_over": true'
        ),
        PlanPart(
            "component:web",
            rollback_to=StoredPlan("exe_1", "sha256:1", "cfg_1"),
            take_over=True,
        ),
    ),
    (
        '"do": "sync", "part": "component:web", "component": "web", "destroy": false',
        SyncPart("component:web"),
    ),
    (
        '"do": "plan", "auto": false, "part": "sandbox", "destroy": false',
        PlanPart("sandbox"),
    ),
    (
        '"do": "apply", "plan": "sandbox-plan", "part": "sandbox", "destroy": false',
        ApplyPart("sandbox", "sandbox-plan"),
    ),
    (
        '"do": "plan", "auto": true, "part": "component:api", "component": "api", "destroy": false',
        PlanPart("component:api", auto=True),
    ),
    (
        (
            '"do": "plan", "auto": false, "part": "component:api", "component": "api",'
            ' "destroy": true, "delay_s": 20.0'
        ),
        PlanPart("component:api", destroy=True, delay_s=20.0),
    ),
    (
        (
            '"do": "apply", "plan": "api.destroy-plan", "part": "component:api", "component": "api",'
            ' "destroy": true'
        ),
        ApplyPart("component:api", "api.destroy-plan", destroy=True),
    ),
    (
        '"do": "plan", "part": "sandbox", "component": "", "destroy": false, "scan": true',
        ScanPart("sandbox"),
    ),
    (
        '"do": "plan", "part": "component:api", "component": "api", "destroy": false, "scan": true',
        ScanPart("component:api"),
    ),
    (
        '"do": "action", "action": "warm", "trigger": "pre-deploy-component", "component": "api"',
        RunAction("warm", "pre-deploy-component", "api"),
    ),
    (
        (
            '"do": "action", "action": "", "trigger": "runbook", "component": "", "runbook": "rb",'
            ' "runbook_step": "own"'
        ),
        RunAction("", "runbook", "", "rb", "own"),
    ),
]


@pytest.mark.parametrize(("recorded", "intent"), RECORDED)
def test_a_recorded_intent_is_read_and_written_as_it_was(recorded: str, intent: Intent) -> None:
    text = f'{{"config": "cfg1", "kind": "provision", {recorded}}}'

    stored = read_intent({"intent": json.loads(text)})

    assert stored is not None
    assert stored.intent == intent
    assert stored.values == WorkflowValues("cfg1", "provision")
    assert json.dumps(stored.to_json()) == text


def test_the_values_of_a_workflow_are_stored_with_every_intent() -> None:
    text = (
        '{"config": "cfg1", "kind": "runbook_run", "env": {"A": "b"}, "role": "ops",'
        ' "runbook_inputs": {"x": "1"}, "do": "runner"}'
    )

    stored = read_intent({"intent": json.loads(text)})

    assert stored is not None
    assert stored.values == WorkflowValues("cfg1", "runbook_run", {"A": "b"}, "ops", {"x": "1"})
    assert json.dumps(stored.to_json()) == text


@pytest.mark.parametrize("intent", [None, {}, {"config": "cfg1", "do": "something newer"}])
def test_a_step_without_a_known_intent_has_none(intent: Json) -> None:
    assert read_intent({"intent": intent}) is None


def test_a_plan_that_is_made_again_waits_first() -> None:
    plan: JsonObject = {
        "config": "c",
        "kind": "deploy",
        "do": "plan",
        "part": "sandbox",
        "destroy": False,
    }
    spec: JsonObject = {"job": None, "priority": 3, "intent": plan}

    again = with_delay(spec, 0.0)

    assert again == {**spec, "intent": {**plan, "auto": False, "delay_s": 0.0}}
    with pytest.raises(ValueError, match="only a plan"):
        with_delay({"intent": {"config": "c", "do": "runner"}}, 1.0)


@pytest.mark.parametrize(
    ("recorded", "complaint"),
    [
        ('"a text"', "the intent of a step is not an object"),
        ('{"config": "c", "do": "plan", "destroy": false}', "`part` of .* is not a text"),
        (
            '{"config": "c", "do": "plan", "part": 1, "destroy": false}',
            "`part` of .* is not a text",
        ),
        (
            '{"config": "c", "do": "plan", "part": "sandbox"}',
            "`destroy` of .* is not true or false",
        ),
        (
            '{"config": "c", "do": "plan", "part": "a", "destroy": true, "delay_s": "1"}',
            "`delay_s` of .* is not a number",
        ),
        ('{"do": "runner"}', "`config` of .* is not a text"),
        ('{"config": "c", "do": "runner", "env": []}', "`env` of .* is not an object"),
        ('{"config": "c", "do": "runner", "env": {"A": 1}}', "`env.A` of .* is not a text"),
    ],
)
def test_an_intent_of_a_wrong_shape_is_refused(recorded: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_intent({"intent": json.loads(recorded)})
