"""Versions of the values of an install's inputs: append-only, sensitive ones sealed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from exclave.appconfig.model.kinds.inputs import Input
from exclave.base.errors import NotFound
from exclave.control.definitions import list_definitions
from exclave.control.deps import Deps
from exclave.control.install_state.state import write_state
from exclave.control.installs import input_validation
from exclave.domain.configs import AppOutline
from exclave.domain.identity import OrgId
from exclave.domain.install_state import StateDocument
from exclave.domain.installs import AppInstall, InputVersion
from exclave.storage import app_installs, configs, install_inputs, installs
from exclave.storage.engine.database import Tx


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one version in clear text; never shown, never logged."""

    version: int
    clear: Mapping[str, str]
    stored: InputVersion | None = None
    """None as long as nothing was set."""


def list_declared(tx: Tx, org: OrgId, config_id: str) -> tuple[Input, ...]:
    """List the inputs that a config declares, in its order."""
    return tuple(list_definitions(tx, org, config_id, Input).values())


def read_values(tx: Tx, deps: Deps, org: OrgId, install: str, version: int | None = None) -> Values:
    """Return the unsealed values of an install's inputs."""
    stored = install_inputs.find_version(tx, org, install, version)
    if stored is None:
        return Values(0, {})
    opened = {name: deps.vault.unseal(sealed) for name, sealed in stored.sealed.items()}
    return Values(stored.version, {**stored.values, **opened}, stored)


def read_sensitive(
    tx: Tx, deps: Deps, org: OrgId, install: str, names: Collection[str]
) -> dict[str, str]:
    """Return the sensitive values behind placeholders, for a runner that needs them."""
    app_install = installs.find_install(tx, org, install)
    if not isinstance(app_install, AppInstall):
        raise NotFound("there is no such install of an app")
    declared = [
        declaration
        for declaration in list_declared(tx, org, app_install.config_id)
        if declaration.name in names
    ]
    filled = input_validation.fill_values(declared, read_values(tx, deps, org, install).clear)
    own = [
        declaration
        for declaration in declared
        if declaration.sensitive and not declaration.user_configurable
    ]
    return {declaration.name: filled[declaration.name] for declaration in own}


def store_values(
    tx: Tx,
    deps: Deps,
    org: OrgId,
    install: str,
    declared: Sequence[Input],
    values: Mapping[str, str],
    by: str,
) -> int:
    """Store the next version, with sensitive values sealed."""
    newest = install_inputs.find_version(tx, org, install)
    version = 1 if newest is None else newest.version + 1
    secret = {
        declaration.name
        for declaration in declared
        if declaration.sensitive and not declaration.user_configurable
    }
    install_inputs.add_version(
        tx,
        org,
        install,
        version,
        by=by,
        values={name: text for name, text in values.items() if name not in secret},
        sealed={name: deps.vault.seal(values[name]) for name in sorted(secret & set(values))},
    )
    app_installs.set_input_version(tx, org, install, version)
    return version


def put_into_state(
    tx: Tx, org: OrgId, install: str, declared: Sequence[Input], values: Mapping[str, str]
) -> int:
    """Make the next version of the state, with placeholders for what is sensitive."""
    hidden = input_validation.hide_values(declared, values)

    def change(document: StateDocument) -> None:
        document["inputs"] = {"inputs": hidden}

    return write_state(tx, org, install, "inputs", change)


def merge_values(
    declared: Sequence[Input],
    before: Mapping[str, str],
    given: Mapping[str, str],
    unset: Collection[str] = (),
    *,
    install: str = "",
) -> dict[str, str]:
    """Check new values and merge them into the current ones; undeclared ones are dropped."""
    known = {declaration.name for declaration in declared}
    kept = {name: text for name, text in before.items() if name in known and name not in unset}
    after = {**kept, **given}
    input_validation.check_change(declared, {**dict.fromkeys(unset, ""), **given}, after, install)
    return after


def find_changed(
    declared: Sequence[Input], before: Mapping[str, str], after: Mapping[str, str]
) -> list[str]:
    """Return the names of inputs whose value differs, defaults included."""
    old = input_validation.fill_values(declared, before)
    new = input_validation.fill_values(declared, after)
    return [name for name, text in new.items() if old[name] != text]


def find_touched(
    tx: Tx, org: OrgId, config_id: str, changed: Collection[str]
) -> tuple[bool, list[str]]:
    """Find what reads inputs: the sandbox, and components with all that need them, in order."""
    config = configs.find_config(tx, org, config_id)
    if config is None:
        raise NotFound("there is no such config")
    outline, names = config.outline, set(changed)
    sandbox = outline["sandbox"] is not None and bool(names & set(outline["sandbox"]["inputs"]))
    touched = {
        component["name"] for component in outline["components"] if names & set(component["inputs"])
    }
    return sandbox, add_dependents(outline, touched)


def add_dependents(outline: AppOutline, names: Collection[str]) -> list[str]:
    """List components and all that need them, in deploy order."""
    needs = {component["name"]: set(component["needs"]) for component in outline["components"]}
    ordered = [name for group in outline["order"] for name in group]
    touched = set(names)
    for name in ordered:
        if needs[name] & touched:
            touched.add(name)
    return [name for name in ordered if name in touched]
