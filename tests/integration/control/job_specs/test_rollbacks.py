"""Ways back and ways on: rollbacks, releases that are taken over, applies that were lost."""

from pathlib import Path
from typing import Any

import pytest

from exclave.base.errors import Conflict, InvalidInput, NotFound
from exclave.control.deps import Deps
from exclave.control.installs.upgrades import upgrade_install
from exclave.domain.identity import InstallId, QueueId, User
from exclave.domain.installs import PartState
from exclave.domain.lanes import LaneState
from exclave.domain.workflows import WorkflowState
from exclave.storage import audit, queues
from exclave.wire.installs import Upgrade, WorkflowKind
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from tests.integration.control.job_specs.kubernetes_app import FILES, find_part
from tests.support.apps import sync
from tests.support.install_fixture import (
    build_all,
    digest_of,
    provision,
)


async def test_a_rollback_deploys_the_plan_before_and_says_of_which_config(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)
    first = life.specs["apply component:page"].plan
    (app / "components" / "page.toml").write_text(
        FILES["components/page.toml"].replace("port:", "ports:")
    )
    await sync(deps, user, app)
    await build_all(deps, life.build_peer)
    wish = Upgrade(deploy=True, approve_all=True)
    await upgrade_install(deps, user, InstallId(life.install), wish)
    await life.run()
    second = life.specs["apply component:page"].plan
    before = await find_part(life, "component:page")

    workflow = await life.start(
        WorkflowKind.DEPLOY, components=["page"], rollback_to="previous", approve_all=True
    )
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    plan = life.specs["plan component:page"]
    assert (plan.rollback_to, plan.values) == (first, [])
    assert first.digest != second.digest
    after = await find_part(life, "component:page")
    assert after.state is PartState.ACTIVE
    assert after.config_id != before.config_id


async def test_a_rollback_needs_an_earlier_deploy_of_something_that_can_be_rolled_back(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)

    async def roll_back(component: str, to: str = "previous", **more: Any) -> None:
        components = [component]
        await life.start(WorkflowKind.DEPLOY, components=components, rollback_to=to, **more)

    with pytest.raises(Conflict, match="never deployed otherwise"):
        await roll_back("page")
    with pytest.raises(NotFound, match="no earlier plan"):
        await roll_back("page", digest_of("unknown"))
    with pytest.raises(InvalidInput, match="`terraform_module` cannot be rolled back"):
        await roll_back("api")
    with pytest.raises(InvalidInput, match="`docker_build` cannot be rolled back"):
        await roll_back("web")
    with pytest.raises(InvalidInput, match="exactly one component"):
        await roll_back("page", plan_only=True)


async def test_a_deploy_may_take_a_release_over(deps: Deps, user: User, app: Path) -> None:
    life = await provision(deps, user, app)

    await life.start(WorkflowKind.DEPLOY, components=["page"], take_over_release=True)
    await life.run()

    assert life.specs["plan component:page"].take_over_release
    with pytest.raises(InvalidInput, match="takes no release over"):
        await life.start(WorkflowKind.TEARDOWN, components=["page"], take_over_release=True)


@pytest.mark.parametrize(
    ("part", "lane"), [("page", LaneState.FREE), ("api", LaneState.NEEDS_RECONCILE)]
)
async def test_a_lost_apply_blocks_its_lane_unless_a_plan_finds_its_way_from_there(
    deps: Deps, user: User, app: Path, part: str, lane: LaneState
) -> None:
    life = await provision(deps, user, app)
    workflow = await life.start(WorkflowKind.DEPLOY, components=[part], approve_all=True)
    interrupted = Outcome(
        state=OutcomeState.INTERRUPTED, reason=Reason.RUNNER_RESTARTED, message="restarted"
    )
    life.answers[f"apply component:{part}"] = [interrupted]
    await life.run()

    apply = (await life.steps(workflow))[f"{part}.apply"]
    assert apply.reason == Reason.RUNNER_RESTARTED
    lanes = await deps.db.read(lambda tx: queues.list_lanes(tx, user.org, QueueId(life.install)))
    assert {each.name: each.state for each in lanes}[f"component:{part}"] == lane


async def test_an_adoption_is_in_the_plan_and_in_the_audit_log(
    deps: Deps, user: User, app: Path
) -> None:
    life = await provision(deps, user, app)
    await life.start(WorkflowKind.DEPLOY, components=["page"], adopt=True)
    await life.run()

    assert life.specs["plan component:page"].adopt is True
    entries = await deps.db.read(lambda tx: audit.list_entries(tx, user.org, "", 50))
    adopted = next(entry for entry in entries if entry.action == "component_adopted")
    assert (adopted.subject, adopted.detail["component"]) == (life.install, "page")


@pytest.mark.parametrize(
    ("components", "more"),
    [
        (["page", "texts"], {}),
        (["api"], {}),
        (["page"], {"rollback_to": "previous"}),
    ],
)
async def test_only_one_component_in_a_cluster_can_be_adopted(
    deps: Deps, user: User, app: Path, components: list[str], more: dict[str, Any]
) -> None:
    life = await provision(deps, user, app)

    with pytest.raises(InvalidInput):
        await life.start(WorkflowKind.DEPLOY, components=components, adopt=True, **more)


async def test_a_deploy_that_may_go_back_names_the_plan_that_is_deployed(
    deps: Deps, user: User, app: Path
) -> None:
    file = app / "components/page.toml"
    file.write_text("rollback_on_failure = true\n" + file.read_text())
    life = await provision(deps, user, app)
    first = life.specs["plan component:page"]
    deployed = life.specs["apply component:page"].plan
    await life.start(WorkflowKind.DEPLOY, components=["page"], approve_all=True)

    await life.run()

    assert first.fall_back_to is None
    assert life.specs["plan component:page"].fall_back_to == deployed
    apply = life.specs["apply component:page"]
    assert apply.timeout_s == 2 * apply.wait.going_back_s
