"""An install in a toy cloud, its Stack, and reports of its runner."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from exclave.control.deps import Deps
from exclave.control.stacks import cloud_stacks, stacks
from exclave.domain.identity import InstallId, QueueId, RunnerIdentity, User
from exclave.wire.stacks import StackCreated, StackReport, StackVersionReply
from tests.integration.control.conftest import World
from tests.support.installs import make_app, make_app_install
from tests.support.toy_cloud_stack import add_toy_cloud, write_archives
from tests.support.world import ManualClock, enrol_fake_runner

ACCOUNT = "123456789012"
SECRETS = ({"name": "db_password", "required": True},)


@dataclass
class CloudShop:
    """An app for a cloud with one install."""

    deps: Deps
    clock: ManualClock
    user: User
    app: str
    install: InstallId

    async def create(self) -> StackCreated:
        return await stacks.create_stack(self.deps, self.user, self.install)

    async def list_versions(self) -> list[StackVersionReply]:
        return (await cloud_stacks.list_versions(self.deps, self.user, self.install)).items

    async def show_states(self) -> list[tuple[int, str]]:
        return [(version.version, str(version.state)) for version in await self.list_versions()]

    async def enrol(self) -> RunnerIdentity:
        return (await enrol_fake_runner(self.deps, self.user, QueueId(self.install))).who

    async def report(self, who: RunnerIdentity, digest: str, **more: Any) -> None:
        body = {
            "facts": {},
            "secrets": {"db_password": True},
            "document": {"format": 1, "digest": digest, "generator": "test"},
            "outputs": {"account_id": ACCOUNT, "region": "eu-west-1"},
            "mode": "full",
            "enabled": True,
            **more,
        }
        await stacks.report_stack(self.deps, who, StackReport.model_validate(body))


async def open_cloud_shop(
    world: World, monkeypatch: pytest.MonkeyPatch, folder: Path, **more: Any
) -> CloudShop:
    """Return an install in the toy cloud of an app with a secret."""
    add_toy_cloud(monkeypatch)
    deps = replace(world.deps, bundles=write_archives(folder))
    place = {"region": "eu-west-1", "account": more.pop("account", ACCOUNT)}
    provision = more.pop("provision", False)
    app = await make_app(deps, world.user, **{"cloud": "aws", "secrets": SECRETS, **more})
    made = await make_app_install(deps, world.user, "shop", provision=provision, **place)
    return CloudShop(deps, world.clock, world.user, app, InstallId(made.id))
