"""What a model is built from: the parts of an app that concern its Stack, and an install."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from exclave.appconfig.model.app import App
from exclave.appconfig.model.kinds.inputs import Input
from exclave.appconfig.model.kinds.permissions import BreakGlassRole, NamedPolicy, Role
from exclave.appconfig.model.kinds.runner import Runner
from exclave.appconfig.model.kinds.secrets import Secret
from exclave.appconfig.model.kinds.stack import Stack
from exclave.appconfig.templates import ROOT, Fault, find_uses
from exclave.appconfig.uses import Found
from exclave.stacks.base import SigningKey
from exclave.stacks.model import AccountPin, ProgramPins

Render = Callable[[str], "str | Fault"]
"""Renders a text with what is known of the install before its Stack exists."""
_EARLY: Final = ("id", "name", "labels", "org", "app", "inputs", "cloud_account")
_EARLY_OF_INSTALL: Final = ("id", "name", "inputs")


@dataclass(frozen=True, slots=True)
class StackParts:
    """The parts of an app that its Stack is made from, as the app writes them."""

    cloud: str
    roles: tuple[Role, ...] = ()
    emergencies: tuple[BreakGlassRole, ...] = ()
    shared: tuple[NamedPolicy, ...] = ()
    secrets: tuple[Secret, ...] = ()
    inputs: tuple[Input, ...] = ()
    runner: Runner | None = None
    stack: Stack | None = None
    wanted_outputs: tuple[str, ...] = ()
    """The outputs of the Stack that any text of the app reads, sorted."""


@dataclass(frozen=True, slots=True)
class InstallFacts:
    """The facts about an install, and about the control plane that it belongs to."""

    install_id: str
    install: str
    org_id: str
    app: str
    account: AccountPin
    runner_url: str
    keys: tuple[SigningKey, ...]
    program: ProgramPins


def collect_parts(app: App, uses: Iterable[Found] = ()) -> StackParts:
    """Return the parts of an app that was read from its directory."""
    return StackParts(
        cloud=app.cloud,
        roles=app.roles,
        emergencies=app.list(BreakGlassRole),
        shared=app.named_policies,
        secrets=app.secrets,
        inputs=app.inputs,
        runner=app.runner,
        stack=app.stack,
        wanted_outputs=_list_outputs(mention.use.path for mention in uses),
    )


def find_wanted_outputs(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the outputs of the Stack that any of the texts reads, sorted."""
    return _list_outputs(path for text in texts for path in _find_paths(text))


def limit_state(state: Mapping[str, object]) -> dict[str, object]:
    """Return what of an install's state may be in its Stack: what is known before it exists.

    So a Stack does not change because something was deployed.
    """
    install = state.get("install")
    known = install if isinstance(install, Mapping) else {}
    early = {key: state[key] for key in _EARLY if key in state}
    return {**early, "install": {key: known[key] for key in _EARLY_OF_INSTALL if key in known}}


def _find_paths(text: str) -> Iterator[tuple[str, ...]]:
    if "install_stack" not in text:
        return
    uses = find_uses(text)
    if not isinstance(uses, Fault):
        yield from (use.path for use in uses)


def _list_outputs(paths: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    wanted = set()
    for path in paths:
        match path:
            case (root, "install_stack", "outputs", name, *_) if root == ROOT:
                wanted.add(name)
    return tuple(sorted(wanted))
