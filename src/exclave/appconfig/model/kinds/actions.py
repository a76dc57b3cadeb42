"""`actions/`: scripts that run on a trigger inside the customer's account."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import (
    NEW,
    REQUIRED,
    Dead,
    Table,
    flag,
    number,
    tables,
    text,
    text_map,
    texts,
)
from exclave.appconfig.model.kinds.shared import Repos

_PAIRED = (
    "provision", "reprovision", "deprovision", "deploy-all-components",
    "teardown-all-components", "deprovision-sandbox", "reprovision-sandbox", "update-inputs",
    "secrets-sync",
)  # fmt: skip
_OF_COMPONENTS = (
    "deploy-component",
    "teardown-component",
    "enable-component",
    "disable-component",
)
COMPONENT_TRIGGERS = tuple(f"{when}-{what}" for what in _OF_COMPONENTS for when in ("pre", "post"))
"""Triggers of a component; the toggle triggers may omit it, which means any component."""
TRIGGERS = (
    "manual", "cron", *(f"{when}-{what}" for what in _PAIRED for when in ("pre", "post")),
    "post-provision-sandbox", *COMPONENT_TRIGGERS, "role-enabled", "role-disabled",
)  # fmt: skip
OLD_TRIGGERS: Mapping[str, str] = {
    "pre-component-deploy": "pre-deploy-component",
    "post-component-deploy": "post-deploy-component",
}


class ActionTrigger(Table):
    """When an action runs."""

    DEAD: ClassVar[Mapping[str, Dead]] = {"schedule": Dead("Write `cron_schedule` instead.")}

    type: str = text(
        "What sets it off.",
        '"post-deploy-component"',
        need=REQUIRED,
        choices=TRIGGERS,
        old_choices=OLD_TRIGGERS,
    )
    cron_schedule: str = text("For `cron`: five fields.", '"*/15 * * * *"', format="cron")
    component_name: str = text("For triggers of one component.", '"api"')
    index: int | None = number("Order among the actions on the same trigger.", "1", default=None)


class ActionStep(Repos):
    """One script of an action."""

    DEAD: ClassVar[Mapping[str, Dead]] = {
        "enable_kube_config": Dead("Write it on the action, not on a step."),
    }

    name: str = text("Unique in the action.", '"check"', need=REQUIRED)
    command: str = text("Run in the folder of the repository.", '"./check.sh"', templated=True)
    inline_contents: str = text(
        "A script with its `#!` line, or the file that holds it; wins over `command`.",
        '"./scripts/check.sh"',
        templated=True,
        reference=True,
    )
    env_vars: Mapping[str, str] = text_map(
        "Environment of the step.",
        '{ REGION = "{{.nuon.cloud_account.aws.region}}" }',
        templated=True,
    )


class Action(Table):
    """Scripts that run on a trigger inside the customer's account."""

    DEAD: ClassVar[Mapping[str, Dead]] = {
        "label": Dead('Write a table of labels: [labels] with group = "…".'),
        "description": Dead("Write it as a comment."),
        "inputs": Dead("Actions have no inputs; give values in steps[].env_vars."),
    }

    name: str = text(
        "Unique; read in templates as `.nuon.actions.workflows.<name>`.", '"health"', need=REQUIRED
    )
    timeout: str = text("At most 1h.", '"5m"', need=REQUIRED, format="duration")
    triggers: tuple[ActionTrigger, ...] = tables(ActionTrigger, "When it runs.", need=REQUIRED)
    steps: tuple[ActionStep, ...] = tables(
        ActionStep, "What it runs, one after the other.", need=REQUIRED
    )
    dependencies: tuple[str, ...] = texts("Components that it is about.", '["api"]')
    break_glass_role: str = text(
        "The break-glass role of manual runs.",
        '"{{.nuon.install.id}}-emergency"',
        templated=True,
        deprecated="Write `role` instead.",
    )
    role: str = text(
        "The role it runs with; absent: the maintenance role.",
        '"{{.nuon.install.id}}-support"',
        templated=True,
        since=NEW,
    )
    labels: Mapping[str, str] = text_map("Labels of your own.", '{ type = "check" }', since=NEW)
    enable_kube_config: bool = flag("Give it access to the cluster.", default=True, since=NEW)
    kubernetes_context: str = text(
        "The cluster it talks to; absent: that of the sandbox.", '"edge"', since=NEW
    )
    image: str = text(
        "Run the steps inside this image.",
        '"docker.io/library/alpine:3"',
        since=NEW,
        templated=True,
    )
