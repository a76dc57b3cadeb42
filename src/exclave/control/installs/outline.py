"""Load the outline of an install and its app that step graphs are built from."""

from collections.abc import Mapping, Sequence

from exclave.appconfig.model.kinds.components import Component, PlannedComponent
from exclave.appconfig.model.kinds.policies import CLUSTER, Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.control.definitions import find_definition, list_definitions
from exclave.control.install_state.options import is_enabled
from exclave.control.job_specs.component_types import find_shape, refuse_unsupported
from exclave.control.job_specs.secrets import copies_secrets, pulls_with_login
from exclave.domain.configs import AppOutline, Config, OutlinedAction, OutlinedComponent
from exclave.domain.identity import OrgId
from exclave.domain.installs import AppInstall, ApprovalOption, InstallPart, may_exist, name_part
from exclave.domain.lanes import POLICIES, SANDBOX
from exclave.flow.plans.outline import Component as OutlineComponent
from exclave.flow.plans.outline import Hook, Outline
from exclave.storage import builds, install_parts
from exclave.storage.engine.database import Tx

_TRIGGERED = frozenset({"manual", "cron"})
"""Triggers that are not hooks of a workflow."""


def load_outline(tx: Tx, org: OrgId, install: AppInstall, config: Config) -> Outline:
    """Return all that the shape of a workflow depends on."""
    outline = config.outline
    refuse_unsupported(
        [(component["name"], component["type"]) for component in outline["components"]]
    )
    parts = {part.name: part for part in install_parts.list_parts(tx, org, install.id)}
    auto = install.approval is ApprovalOption.AUTO
    sandbox = find_definition(tx, org, config.id, Sandbox)
    definitions = list_definitions(tx, org, config.id, Component)
    return Outline(
        components=tuple(
            _make_component(
                component, definitions.get(component["name"]), parts, install.toggles, auto=auto
            )
            for component in _in_order(outline)
        ),
        hooks=tuple(_list_hooks(outline["actions"])),
        has_sandbox=sandbox is not None,
        sandbox_deployed=_is_there(parts.get(SANDBOX)),
        sandbox_auto_approve=auto or _is_auto(sandbox),
        has_secrets=bool(outline["secrets"]) or pulls_with_login(tx, org, install.id),
        copies_secrets=copies_secrets(tx, org, install.id, config.id),
        has_policies=any(
            policy.type == CLUSTER
            for policy in list_definitions(tx, org, config.id, Policy).values()
        ),
        policies_deployed=_is_there(parts.get(POLICIES)),
        builds_pending=builds.has_pending(tx, org, config.id, hold=True),
    )


def _in_order(outline: AppOutline) -> Sequence[OutlinedComponent]:
    by_name = {component["name"]: component for component in outline["components"]}
    return [by_name[name] for group in outline["order"] for name in group]


def _make_component(
    outlined: OutlinedComponent,
    definition: Component | None,
    parts: Mapping[str, InstallPart],
    toggles: Mapping[str, bool],
    *,
    auto: bool,
) -> OutlineComponent:
    name = outlined["name"]
    return OutlineComponent(
        name=name,
        needs=tuple(outlined["needs"]),
        enabled=is_enabled(outlined, toggles),
        deployed=_is_there(parts.get(name_part(name))),
        auto_approve=auto or _is_auto(definition),
        shape=find_shape(outlined["type"]),
    )


def _is_there(part: InstallPart | None) -> bool:
    return part is not None and may_exist(part.state)


def _is_auto(definition: Component | Sandbox | None) -> bool:
    if not isinstance(definition, PlannedComponent | Sandbox):
        return False
    return definition.auto_approve_on_policies_passing


def _list_hooks(actions: Sequence[OutlinedAction]) -> Sequence[Hook]:
    return [
        Hook(
            action["name"],
            trigger["type"],
            trigger.get("component") or "",
            trigger.get("index") or 0,
        )
        for action in actions
        for trigger in action["triggers"]
        if trigger["type"] not in _TRIGGERED
    ]
