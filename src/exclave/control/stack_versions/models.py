"""The models that Stacks of clouds are made from, as an install's config and state are now."""

from collections.abc import Callable, Iterator

from exclave.appconfig.model.kinds.inputs import Input
from exclave.appconfig.model.kinds.permissions import BreakGlassRole, NamedPolicy, Role
from exclave.appconfig.model.kinds.runner import Runner
from exclave.appconfig.model.kinds.secrets import Secret
from exclave.appconfig.model.kinds.stack import Stack
from exclave.appconfig.templates import ROOT, Fault
from exclave.base.json_values import Json
from exclave.control.definitions import find_definition, list_definitions
from exclave.control.deps import Deps
from exclave.control.install_state.state import read_named_state
from exclave.control.job_specs.rendering import Renderings
from exclave.control.stack_versions.stored_models import NO_PROGRAM
from exclave.domain.identity import OrgId
from exclave.domain.installs import AppInstall
from exclave.stacks.building.model import BuiltModel, build_model
from exclave.stacks.building.parts import (
    InstallFacts,
    StackParts,
    find_wanted_outputs,
    limit_state,
)
from exclave.stacks.model import AccountPin
from exclave.storage import configs
from exclave.storage.engine.database import Tx


def build_cloud_model(
    tx: Tx, deps: Deps, org: OrgId, install: AppInstall, texts: Renderings
) -> BuiltModel:
    """Return the model of an install's Stack as its config and state are now."""
    parts = _read_parts(tx, org, install)
    facts = InstallFacts(
        install_id=install.id,
        install=install.name,
        org_id=org,
        app=install.app_name,
        account=AccountPin(install.place.region, install.place.account, install.place.tenant),
        runner_url=deps.runner_url,
        keys=(),
        program=NO_PROGRAM,
    )
    return build_model(parts, facts, _make_renderer(tx, org, install, texts))


def _read_parts(tx: Tx, org: OrgId, install: AppInstall) -> StackParts:
    config = install.config_id
    rows = configs.list_all_parts(tx, org, config)
    return StackParts(
        cloud=install.target,
        roles=tuple(list_definitions(tx, org, config, Role).values()),
        emergencies=tuple(list_definitions(tx, org, config, BreakGlassRole).values()),
        shared=tuple(list_definitions(tx, org, config, NamedPolicy).values()),
        secrets=tuple(list_definitions(tx, org, config, Secret).values()),
        inputs=tuple(list_definitions(tx, org, config, Input).values()),
        runner=find_definition(tx, org, config, Runner),
        stack=find_definition(tx, org, config, Stack),
        wanted_outputs=find_wanted_outputs(text for row in rows for text in _list_texts(row.value)),
    )


def _make_renderer(
    tx: Tx, org: OrgId, install: AppInstall, texts: Renderings
) -> Callable[[str], str | Fault]:
    """Return a function that renders with what is known before the Stack exists."""
    name, state = read_named_state(tx, org, install.id)
    known = limit_state(state)
    return lambda text: texts.render(tx, text, {ROOT: known}, f"{name} early")


def _list_texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _list_texts(item)
        case list():
            for item in value:
                yield from _list_texts(item)
