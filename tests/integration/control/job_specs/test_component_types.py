"""A component type is one entry of the registry: a toy is built, deployed, scanned, torn down."""

import shutil
from pathlib import Path

import pytest

from exclave.base.errors import InvalidInput
from exclave.control.deps import Deps
from exclave.domain.identity import User
from exclave.domain.installs import Drift
from exclave.domain.workflows import WorkflowState
from exclave.storage import install_parts
from exclave.wire.installs import WorkflowKind
from exclave.wire.runner import Outcome
from tests.support.install_fixture import (
    NOTICEBOARD,
    InstallFixture,
    digest_of,
    make_install_fixture,
    succeed,
)
from tests.support.toy_component_type import REVISION, add_toy_type

CHART = """
name = "page"
type = "helm_chart"
chart_name = "page-{{ .nuon.inputs.inputs.port }}"

[public_repo]
repo = "."
directory = "modules/page"

[values]
API = "{{ .nuon.components.api.outputs.address }}"
"""
PROGRAM = """
name = "page"
type = "pulumi"
runtime = "go"

[public_repo]
repo = "."
directory = "modules/page"
"""
POLICY = """
type = "helm_chart"
engine = "opa"
name = "no-latest"
components = ["page"]
contents = '''package nuon
deny contains "latest" if { false }'''
"""


def planned(*, changes: int = 2) -> Outcome:
    return succeed(digest=digest_of("plan"), changes=changes, revision=REVISION)


async def deploy_toy(deps: Deps, user: User, folder: Path) -> InstallFixture:
    """Provision an install whose component `page` is a chart."""
    app = shutil.copytree(NOTICEBOARD, folder / "noticeboard")
    (app / "components" / "page.toml").write_text(CHART)
    (app / "policies" / "charts.toml").write_text(POLICY)
    life, workflow = await make_install_fixture(deps, user, app)
    life.answers["script"] = [planned(), succeed(release="page.acme")]
    await life.report()
    await life.run()
    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    return life


async def test_a_type_with_one_entry_is_built_planned_applied_and_gives_outputs(
    deps: Deps, user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_toy_type(monkeypatch)

    life = await deploy_toy(deps, user, tmp_path)

    build, apply = life.builds["component:page"], life.specs["script"]
    assert build.type == "helm_chart"
    assert apply.steps[0].argv == [
        "toy",
        "upgrade",
        "page-8790",
        digest_of(build.source),
        digest_of("plan"),
    ]
    assert apply.env == {"API": "api.internal"}
    assert apply.timeout_s == 1800.0  # the default of charts, not of modules
    state = await life.state()
    assert state["components"]["page"]["outputs"] == {"url": "http://page.acme/"}


async def test_its_plans_see_the_policies_of_the_type_and_may_have_no_changes(
    deps: Deps, user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_toy_type(monkeypatch)
    life = await deploy_toy(deps, user, tmp_path)
    life.answers["script"] = [planned(changes=0)]

    workflow = await life.start(WorkflowKind.DRIFT_SCAN, components=["page"])
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert life.specs["script"].steps[0].argv[-1] == "no-latest"
    parts = await deps.db.read(lambda tx: install_parts.list_parts(tx, user.org, life.install))
    assert {part.name: part.drift for part in parts}["component:page"] is Drift.NONE


async def test_it_is_torn_down_by_the_same_entry(
    deps: Deps, user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_toy_type(monkeypatch)
    life = await deploy_toy(deps, user, tmp_path)
    life.answers["script"] = [planned(), succeed()]

    workflow = await life.start(WorkflowKind.TEARDOWN, components=["page"], approve_all=True)
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert life.specs["script"].steps[0].argv[1] == "uninstall"
    assert (await life.state())["components"]["page"]["outputs"] in (None, {})


async def test_without_an_entry_an_app_cannot_be_deployed(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    app = shutil.copytree(NOTICEBOARD, tmp_path / "noticeboard")
    (app / "components" / "page.toml").write_text(PROGRAM)

    with pytest.raises(InvalidInput, match=r"cannot deploy: `page` \(pulumi\)"):
        await make_install_fixture(deps, user, app)
