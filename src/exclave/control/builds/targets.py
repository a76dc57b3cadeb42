"""The parts of a config version that are built, with their sources and cache keys."""

from collections.abc import Sequence

from exclave.appconfig.model.kinds.actions import Action, ActionStep
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.container_image import ContainerImage
from exclave.appconfig.model.kinds.policies import IMAGE_POLICIES, Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.shared import Repos
from exclave.base.errors import InvalidInput
from exclave.control.definitions import list_definitions, list_policies
from exclave.control.job_specs.component_types import find_type, select_policies
from exclave.domain.builds import name_action_source
from exclave.domain.configs import Config
from exclave.domain.identity import OrgId
from exclave.domain.installs import name_part
from exclave.jobspec.builds import BuildTarget, add_policies, make_target
from exclave.jobspec.facts import SourceFacts
from exclave.storage.engine.database import Tx
from exclave.wire.specs import ACTION_SOURCE


def list_targets(tx: Tx, org: OrgId, config: Config) -> Sequence[BuildTarget]:
    """List the parts of a version that are built from a source."""
    facts = SourceFacts(config.id, config.archive_digest, config.outline.get("folders", {}))
    parts: dict[str, Component | Sandbox] = {
        **list_definitions(tx, org, config.id, Sandbox),
        **list_definitions(tx, org, config.id, Component),
    }
    actions = list_definitions(tx, org, config.id, Action)
    policies = list_policies(tx, org, config.id)
    targets = [
        *(
            _make_part_target(name, definition, facts, policies)
            for name, definition in parts.items()
        ),
        *(_make_step_target(name, step, facts) for name, a in actions.items() for step in a.steps),
    ]
    return [target for target in targets if target is not None]


def find_target(targets: Sequence[BuildTarget], text: str) -> BuildTarget:
    """Return the part that a person names; `db` is short for `component:db`."""
    for name in (text, f"component:{text}"):
        match = next((target for target in targets if target.part == name), None)
        if match is not None:
            return match
    known = ", ".join(target.part.removeprefix("component:") for target in targets)
    raise InvalidInput(
        f"the app has no part `{text}` that is built", hint=f"Its parts: {known or 'none'}."
    )


def _make_part_target(
    component: str,
    definition: Component | Sandbox,
    facts: SourceFacts,
    policies: Sequence[Policy],
) -> BuildTarget | None:
    type_ = find_type(definition)
    if type_ is None or not isinstance(definition, Repos | ContainerImage):
        return None
    target = make_target(
        definition,
        facts,
        part=name_part(component),
        type_=type_.artifact,
        timeout=definition.build_timeout,
    )
    if target is None or type_.policy not in IMAGE_POLICIES:
        return target
    return add_policies(target, select_policies(policies, type_, component))


def _make_step_target(action: str, step: ActionStep, facts: SourceFacts) -> BuildTarget | None:
    part = name_action_source(action, step.name)
    return make_target(step, facts, part=part, type_=ACTION_SOURCE)
