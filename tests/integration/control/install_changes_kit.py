"""Installs that run, to be changed: what is read back, and what is deployed again."""

from typing import Any

from exclave.control.installs import inputs, state_views
from exclave.domain.identity import InstallId
from exclave.domain.installs import InstallState, PartState
from exclave.storage import app_installs, install_parts
from exclave.storage.engine.database import Tx
from exclave.wire.installs import InputsChanged, SetInputs, UpgradeReply
from tests.integration.control.conftest import World
from tests.support.installs import COMPONENTS, make_app, make_app_install

ALL = ("sandbox", *(f"component:{each['name']}" for each in COMPONENTS))


async def make_active(world: World, *parts: str, **more: Any) -> tuple[str, InstallId]:
    """Make an install that has deployed these parts from config 1."""
    deps, user = world.deps, world.user
    app = await make_app(deps, user, **more)
    made = await make_app_install(deps, user, app, inputs={"api_key": "old"}, provision=False)

    def deploy(tx: Tx) -> None:
        install = app_installs.find_app_install(tx, user.org, made.id)
        assert install is not None
        for part in parts:
            install_parts.save_deployment(
                tx,
                user.org,
                made.id,
                part,
                PartState.ACTIVE,
                workflow="wfl_" + "0" * 26,
                config=install.config_id,
                build=None,
            )
        if parts:
            app_installs.set_state(tx, user.org, made.id, InstallState.ACTIVE)

    await deps.db.write(deploy)
    return app, InstallId(made.id)


async def set_inputs(world: World, install: InstallId, **wish: Any) -> InputsChanged:
    return await inputs.set_inputs(world.deps, world.user, install, SetInputs.model_validate(wish))


async def read_inputs(world: World, install: InstallId) -> dict[str, Any]:
    state = await state_views.show_state(world.deps, world.user, install)
    return state.document["inputs"]["inputs"]  # type: ignore[index,call-overload,return-value]


def name_deploys(reply: InputsChanged | UpgradeReply) -> set[str]:
    steps = reply.workflow.steps if reply.workflow else []
    return {step.name.partition(".")[0] for step in steps if step.name.endswith("apply")}
