"""Actions of an install: by hand, in a runbook, by the clock."""

import pytest

from exclave.base.errors import NotFound
from exclave.control.deps import Deps
from exclave.control.installs import actions, runbooks
from exclave.control.installs.scheduler import fire_schedules
from exclave.domain.identity import InstallId, User
from exclave.storage import schedules
from exclave.wire.actions import RunAction, RunRunbook
from tests.support.install_fixture import provision
from tests.support.world import ManualClock


async def test_actions_run_by_hand_with_values_of_their_own(deps: Deps, user: User) -> None:
    life = await provision(deps, user)
    install = InstallId(life.install)

    assert isinstance(deps.clock, ManualClock)
    deps.clock.advance(1)
    await actions.run_action(
        deps, user, install, RunAction(action="check", env={"URL": "http://x/"})
    )
    await life.run()

    spec = life.specs["action manual ask"]
    assert spec.env["URL"] == "http://x/"
    assert spec.env["NUON_INSTALL_ID"] == life.install
    runs = await actions.list_runs(deps, user, install, action="check", cursor="", limit=10)
    assert [(run.trigger, run.state) for run in runs.items] == [
        ("manual", "succeeded"),
        ("post-deploy-component", "succeeded"),
    ]
    with pytest.raises(NotFound, match="chek") as caught:
        await actions.run_action(deps, user, install, RunAction(action="chek"))
    assert "check" in caught.value.advice


async def test_a_runbook_goes_step_by_step(deps: Deps, user: User) -> None:
    life = await provision(deps, user)

    await runbooks.run_runbook(deps, user, InstallId(life.install), RunRunbook(runbook="refresh"))
    await life.run()

    assert [n for n in life.ran if n != "noop"] == [
        "plan component:api",
        "apply component:api",
        "plan component:page",
        "apply component:page",
        "action post-deploy-component ask",
        "action runbook ask",
    ]


async def test_crons_fire_once_per_tick_and_not_while_the_last_run_goes_on(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    clock = deps.clock
    assert isinstance(clock, ManualClock)

    clock.advance(15 * 60)
    await fire_schedules(deps)
    await fire_schedules(deps)
    await life.run()
    assert life.ran.count("action cron ask") == 1

    clock.advance(15 * 60)
    await fire_schedules(deps)
    clock.advance(15 * 60)
    await fire_schedules(deps)
    rows = await deps.db.read(lambda tx: schedules.list_schedules(tx, user.org, life.install))
    assert "had not ended" in next(row.note for row in rows if row.kind == "action")
    await life.run()
    assert life.ran.count("action cron ask") == 2
