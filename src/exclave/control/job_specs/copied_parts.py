"""Gather the facts for jobs that copy a component's image into the install's registry."""

from exclave.appconfig.model.kinds.components import Component
from exclave.control.job_specs.cluster_access import find_sandbox_outputs
from exclave.control.job_specs.component_types import get_copied_type
from exclave.control.job_specs.context import Scope
from exclave.domain.intents import SyncPart
from exclave.jobspec.facts import ImageFacts
from exclave.wire.model import Request


def make_sync(scope: Scope, intent: SyncPart) -> Request:
    """Return the job that copies a component into the install, or removes it from there."""
    definition = scope.find_definition(Component, intent.component)
    facts = ImageFacts(
        artifact=scope.find_artifact(intent.part),
        render=scope.render,
        install_id=scope.install,
        target=scope.row.target,
        sandbox=find_sandbox_outputs(scope),
        role=scope.role_name,
    )
    return get_copied_type(definition).make_sync(definition, facts, intent)
