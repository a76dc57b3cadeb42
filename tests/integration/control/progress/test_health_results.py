"""What becomes of the health of components: who looks, when, and what is stored."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from exclave.control.installs.installs import show_install
from exclave.control.installs.scheduler import fire_schedules
from exclave.domain.identity import InstallId
from exclave.storage import schedules
from exclave.wire.installs import PartReply, WorkflowKind
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import HealthSpec
from tests.integration.control.conftest import World
from tests.support.install_fixture import NOTICEBOARD, InstallFixture, fail, provision, succeed

TEXTS = """
name = "texts"
type = "kubernetes_manifest"
namespace = "shop"
manifest = '''
apiVersion: v1
kind: ConfigMap
metadata: {name: texts}
'''
[health]
stabilization_window = "2m"
block_deploy = BLOCK
[[health.probes]]
name = "page"
type = "http"
url = "http://{{ .nuon.install.name }}.shop/healthz"
"""


async def start(world: World, folder: Path, *, block: bool) -> InstallFixture:
    """Provision an app with a component that has health checks."""
    app = shutil.copytree(NOTICEBOARD, folder / "noticeboard")
    text = TEXTS.replace("BLOCK", "true" if block else "false")
    (app / "components/texts.toml").write_text(text)
    return await provision(world.deps, world.user, app)


async def read_part(life: InstallFixture) -> PartReply:
    shown = await show_install(life.deps, life.user, InstallId(life.install))
    return next(part for part in shown.parts if part.part == "component:texts")


async def let_time_pass(world: World, life: InstallFixture, seconds: float) -> None:
    """Run what is due after some time."""
    world.clock.advance(seconds)
    await fire_schedules(life.deps)
    await life.run()


async def test_nobody_looks_before_the_window_has_passed(world: World, tmp_path: Path) -> None:
    life = await start(world, tmp_path, block=False)

    await let_time_pass(world, life, 110)

    assert "health" not in life.ran
    assert (await read_part(life)).health == ""


@pytest.mark.parametrize(
    ("found", "reason"),
    [("healthy", ""), ("degraded", "Deployment shop/web: container app exits with 1")],
)
async def test_what_a_check_finds_is_stored_at_the_component(
    world: World, tmp_path: Path, found: str, reason: str
) -> None:
    life = await start(world, tmp_path, block=False)
    life.answers["health"] = [succeed(health={"state": found, "reason": reason})]

    await let_time_pass(world, life, 121)

    part = await read_part(life)
    assert (part.state, part.health, part.health_reason) == ("active", found, reason)
    assert part.health_at is not None
    spec: Any = life.specs["health"]
    assert isinstance(spec, HealthSpec)
    assert (spec.workspace, spec.rules.window_s) == ("component:texts", 120.0)
    assert [probe.url for probe in spec.rules.probes] == ["http://acme.shop/healthz"]


async def test_a_check_happens_once(world: World, tmp_path: Path) -> None:
    life = await start(world, tmp_path, block=False)
    life.answers["health"] = [succeed(health={"state": "healthy", "reason": ""})]

    await let_time_pass(world, life, 121)
    await let_time_pass(world, life, 3600)

    assert life.ran.count("health") == 1


async def test_a_check_that_cannot_be_made_says_so_and_degrades_nothing(
    world: World, tmp_path: Path
) -> None:
    life = await start(world, tmp_path, block=False)
    life.answers["health"] = [fail(Reason.CLUSTER_UNREACHABLE, "connection refused")]

    await let_time_pass(world, life, 121)

    part = await read_part(life)
    assert (part.health, part.health_reason) == ("", "it was not checked: connection refused")


async def test_what_was_found_is_dropped_if_something_newer_is_deployed(
    world: World, tmp_path: Path
) -> None:
    life = await start(world, tmp_path, block=False)
    world.clock.advance(121)
    await fire_schedules(life.deps)
    life.answers["health"] = [succeed(health={"state": "degraded", "reason": "old"})]
    await life.start(WorkflowKind.DEPLOY, components=["texts"], approve_all=True)

    await life.run()

    assert (await read_part(life)).health == ""


async def test_a_deploy_that_watched_has_found_the_component_healthy(
    world: World, tmp_path: Path
) -> None:
    life = await start(world, tmp_path, block=True)

    assert (await read_part(life)).health == "healthy"
    spec: Any = life.specs["apply component:texts"]
    assert (spec.wait.health.block, spec.timeout_s) == (True, 900.0 + 120.0)
    await let_time_pass(world, life, 3600)
    assert "health" not in life.ran


async def test_a_failed_rollout_leaves_the_component_degraded_with_the_cause(
    world: World, tmp_path: Path
) -> None:
    life = await start(world, tmp_path, block=True)
    cause = "it does not stay healthy: probe page: GET http://acme.shop/healthz answers 503"
    life.answers["apply component:texts"] = [fail(Reason.ROLLOUT_FAILED, cause)]
    await life.start(WorkflowKind.DEPLOY, components=["texts"], approve_all=True)

    await life.run()

    part = await read_part(life)
    assert (part.state, part.health, part.health_reason) == ("failed", "degraded", cause)


async def test_a_teardown_forgets_the_check_that_was_to_come(world: World, tmp_path: Path) -> None:
    life = await start(world, tmp_path, block=False)
    await life.start(WorkflowKind.TEARDOWN, components=["texts"], approve_all=True)
    await life.run()

    left = await life.deps.db.read(
        lambda tx: schedules.list_schedules(tx, life.user.org, life.install)
    )

    assert [schedule.kind for schedule in left if schedule.kind == "health"] == []
