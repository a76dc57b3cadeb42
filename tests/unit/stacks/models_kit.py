"""Models of Stacks for tests: built from app directories with the facts of a made-up install."""

from collections.abc import Mapping
from pathlib import Path

from exclave.appconfig.diagnostics.report import Report
from exclave.appconfig.read_app import read_app
from exclave.appconfig.templates import ROOT, render_text
from exclave.appconfig.uses import find_all
from exclave.stacks.base import SigningKey
from exclave.stacks.building.model import BuiltModel, build_model
from exclave.stacks.building.parts import InstallFacts, Render, StackParts, collect_parts
from exclave.stacks.model import AccountPin, ProgramPins

APPS = Path(__file__).parents[2] / "fixtures" / "apps"
INSTALL = "ins_01jd0000000000000000000000"
FACTS = InstallFacts(
    install_id=INSTALL,
    install="acme",
    org_id="org_1",
    app="shop",
    account=AccountPin("eu-west-1"),
    runner_url="https://runners.vendor.example",
    keys=(SigningKey("k1", "A" * 43),),
    program=ProgramPins("0.1.0", "0" * 64, "1" * 64),
)


def make_render(inputs: Mapping[str, str] | None = None) -> Render:
    """Return a function that renders texts for the made-up install."""
    values = dict(inputs or {})
    state = {
        "id": INSTALL,
        "install": {"id": INSTALL, "name": "acme", "inputs": values},
        "inputs": {"inputs": values},
        "org": {"id": "org_1", "name": "vendor"},
        "app": {"id": "app_1", "name": "shop"},
    }
    return lambda text: render_text(text, {ROOT: state})


def build_parts(parts: StackParts, **inputs: str) -> BuiltModel:
    """Build the model of parts."""
    return build_model(parts, FACTS, make_render(inputs))


def build_app(folder: Path) -> BuiltModel:
    """Build the model of an app directory, with the defaults of its inputs."""
    app = read_app(folder).app
    inputs = {item.name: item.default or "" for item in app.inputs}
    parts = collect_parts(app, find_all(app, Report()))
    return build_model(parts, FACTS, make_render(inputs))


def show_findings(built: BuiltModel) -> list[tuple[str, str, str, tuple[str | int, ...]]]:
    """List the findings: code, section, name, key."""
    return [(str(item.code), item.section, item.name, item.at) for item in built.findings]
