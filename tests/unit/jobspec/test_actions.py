"""The jobs of actions, on their own and as steps of runbooks."""

from dataclasses import replace

import pytest

from exclave.appconfig.model.fields import evolve
from exclave.appconfig.model.kinds.actions import Action, ActionStep
from exclave.appconfig.model.kinds.runbooks import RunbookStep
from exclave.appconfig.model.kinds.secrets import Secret
from exclave.domain.intents import RunAction
from exclave.jobspec.actions import adapt_action, make_action, make_action_job
from exclave.jobspec.errors import NotReady
from exclave.jobspec.secrets import make_secrets_job
from exclave.wire.kubernetes import KubeconfigCluster
from tests.unit.jobspec.jobspec_kit import ARTIFACT, action_facts, render

CHECK = ActionStep(name="check", command="./check.sh {{x}}", env_vars={"A": "1", "B": "{{x}}"})
HEALTH = Action(name="health", timeout="2m", steps=(CHECK,), role="{{x}}")
RUN = RunAction("health", "manual")


def test_an_action_runs_with_its_rendered_texts_and_says_where_it_runs() -> None:
    spec = make_action_job(HEALTH, action_facts({"check": ARTIFACT}), RUN)

    (step,) = spec.steps
    where = "action health, step check"
    assert step.argv == ["./check.sh", f"<{where}: command>"]
    assert (step.script, step.artifact) == (None, ARTIFACT)
    assert step.env == {"A": "1", "B": f"<{where}: env_vars.B>"}
    assert spec.timeout_s == 120.0
    assert spec.env["NUON_INSTALL_ID"] == "ins_1"
    assert spec.env["TRIGGER_TYPE"] == "manual"


def test_the_same_action_and_facts_make_the_same_job() -> None:
    jobs = [make_action_job(HEALTH, action_facts(), RUN).model_dump_json() for _ in range(2)]

    assert jobs[0] == jobs[1]


@pytest.mark.parametrize(
    ("action", "access"),
    [
        (HEALTH, "optional"),
        (evolve(HEALTH, kubernetes_context="edge"), "required"),
        (evolve(HEALTH, enable_kube_config=False), "none"),
    ],
)
def test_an_action_gets_the_cluster_that_is_known(action: Action, access: str) -> None:
    cluster = KubeconfigCluster(name="default")
    facts = replace(action_facts(), cluster=cluster)

    spec = make_action_job(action, facts, RUN)

    assert (spec.kube_config, spec.cluster) == (access, cluster)


def test_a_step_of_a_runbook_adds_its_environment_and_may_have_its_own_role() -> None:
    step = RunbookStep(name="restart", env_vars={"B": "2"}, role="other")

    adapted = adapt_action(HEALTH, step)

    assert adapted.steps[0].env_vars == {"A": "1", "B": "2"}
    assert (adapted.timeout, adapted.role) == ("2m", "other")
    assert adapt_action(HEALTH, RunbookStep(name="restart")).role == "{{x}}"
    assert adapt_action(HEALTH, RunbookStep(name="restart", timeout="9m")).timeout == "9m"


def test_a_script_in_a_runbook_has_the_default_timeout_of_actions() -> None:
    step = RunbookStep(name="restart", inline_contents="#!/bin/sh\necho {{x}}", role="r")

    action = make_action("ops.restart", step)
    spec = make_action_job(action, action_facts(), RUN)

    where = "action ops.restart, step restart: inline_contents"
    assert spec.steps[0].script == f"#!/bin/sh\necho <{where}>"
    assert (spec.timeout_s, action.role) == (300.0, "r")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (ActionStep(name="a", command=" "), "is empty once it is rendered"),
        (ActionStep(name="a", command="echo ((exclave:secret:p))"), "has a secret in its text"),
        (ActionStep(name="a", inline_contents="((exclave:secret:p))"), "has a secret in its text"),
    ],
)
def test_an_empty_command_and_a_secret_in_a_text_make_no_job(
    step: ActionStep, message: str
) -> None:
    with pytest.raises(NotReady, match=message):
        make_action_job(Action(name="x", steps=(step,)), action_facts(), RUN)


def test_the_job_of_secrets_names_what_the_app_declares() -> None:
    secrets = [Secret(name="{{x}}", required=True), Secret(name="b", default="none")]

    spec = make_secrets_job(secrets, lambda text, where: render(text, where).strip("<>"))

    assert [(each.name, each.required, each.default) for each in spec.secrets] == [
        ("secret", True, ""),
        ("b", False, "none"),
    ]
