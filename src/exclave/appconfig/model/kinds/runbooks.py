"""`runbooks/`: procedures of several steps that a person starts."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import (
    NEW,
    REQUIRED,
    Table,
    anything,
    flag,
    tables,
    text,
    text_map,
    texts,
)
from exclave.appconfig.model.kinds.inputs import INPUT_TYPES
from exclave.appconfig.model.kinds.triggers import Filter

STEP_TYPES = (
    "component_deploy", "component_tear_down", "action", "sandbox_reprovision",
    "sandbox_deprovision", "wait_for_event",
)  # fmt: skip


class RunbookInput(Table):
    """A value that is asked for when the runbook starts."""

    name: str = text(
        "Read as `.runbook_inputs.<name>`.", '"version"', need=REQUIRED, since=NEW, format="key"
    )
    display_name: str = text("The label.", '"Version"', since=NEW)
    description: str = text("The explanation.", '"What to deploy."', since=NEW)
    group: str = text("The heading it is shown under.", '"Release"', since=NEW)
    type: str = text(
        "The type of the value.", '"number"', choices=INPUT_TYPES, default="string", since=NEW
    )
    default: str | None = anything("Used when none is given; kept as text.", '"latest"', since=NEW)
    required: bool = flag("A value must be given.", since=NEW)
    sensitive: bool = flag("Masked wherever it is shown.", since=NEW)
    internal: bool = flag("Hidden from customers.", since=NEW)
    user_configurable: bool = flag("The customer sets it.", since=NEW)


class RunbookStep(Table):
    """One step of a runbook; its type decides which keys it takes."""

    ALIASES: ClassVar[Mapping[str, str]] = {"deploy_dependencies": "deploy_dependents"}

    name: str = text("Unique in the runbook.", '"restart"', need=REQUIRED, since=NEW)
    type: str = text(
        "What it does.",
        '"action"',
        need=REQUIRED,
        since=NEW,
        choices=STEP_TYPES,
        other_choices={"deploy": "component_deploy"},
    )
    component_name: str = text("For component steps.", '"api"', since=NEW)
    deploy_dependents: bool = flag("Also deploy what depends on it.", since=NEW)
    tear_down_dependents: bool = flag("Also tear down what depends on it.", since=NEW)
    plan_only: bool = flag("Stop after the plan.", since=NEW)
    skip_component_deploys: bool = flag("Reprovision the sandbox only.", since=NEW)
    action_name: str = text("An action; or write one here.", '"health"', since=NEW)
    command: str = text("A command, instead of an action.", '"uptime"', templated=True, since=NEW)
    inline_contents: str = text(
        "A script or its file, instead of an action.",
        '"./runbooks/restart.sh"',
        templated=True,
        reference=True,
        since=NEW,
    )
    env_vars: Mapping[str, str] = text_map(
        "Environment of the action.",
        '{ VERSION = "{{.runbook_inputs.version}}" }',
        templated=True,
        since=NEW,
    )
    timeout: str = text("Of the action.", '"10m"', since=NEW, format="duration")
    role: str = text(
        "The role of the action.", '"{{.nuon.install.id}}-support"', templated=True, since=NEW
    )
    trigger: str = text("The source of events to wait for.", '"github"', since=NEW)
    event_types: tuple[str, ...] = texts("Which events.", '["push"]', since=NEW)
    filters: tuple[Filter, ...] = tables(Filter, "Which of them count.", since=NEW)
    match_all: bool = flag("All filters must match, not just one.", since=NEW)


class Runbook(Table):
    """A procedure of several steps that a person starts."""

    name: str = text("Unique.", '"restart"', need=REQUIRED, since=NEW)
    description: str = text("What it is for.", '"Restarts the API."', since=NEW)
    readme: str = text(
        "Markdown, or the file that holds it.",
        '"./runbooks/restart.md"',
        templated=True,
        reference=True,
        since=NEW,
    )
    labels: Mapping[str, str] = text_map("Labels of your own.", '{ team = "ops" }', since=NEW)
    dependencies: tuple[str, ...] = texts("Components that it is about.", '["api"]', since=NEW)
    input: tuple[RunbookInput, ...] = tables(
        RunbookInput, "Values that are asked for at the start.", since=NEW
    )
    steps: tuple[RunbookStep, ...] = tables(
        RunbookStep, "What it does, one after the other.", need=REQUIRED, since=NEW
    )
