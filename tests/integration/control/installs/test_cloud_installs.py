"""Installs of apps for clouds: where they are is checked, stored, shown and read by templates."""

from typing import Any

import pytest

from exclave.base.errors import InvalidInput
from exclave.control.installs import config_files, installs, state_views
from exclave.domain.clouds import BadPlace
from exclave.domain.identity import InstallId
from exclave.wire.installs import InstallConfig, NewInstall, SyncInstalls
from tests.integration.control.conftest import World
from tests.support.installs import make_app, make_app_install
from tests.support.toy_stack import add_toy_stack

pytestmark = pytest.mark.usefixtures("toy")
ACCOUNT = "123456789012"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    add_toy_stack(monkeypatch)


async def test_the_place_of_an_install_is_shown_and_read_by_templates(world: World) -> None:
    labels = {"where": "{{ .nuon.cloud_account.aws.region }}"}
    await make_app(world.deps, world.user, cloud="aws", labels=labels)
    made = await make_app_install(
        world.deps, world.user, "shop", region="eu-west-1", account=ACCOUNT, provision=False
    )

    shown = await installs.show_install(world.deps, world.user, InstallId(made.id))
    state = (await state_views.show_state(world.deps, world.user, InstallId(made.id))).document

    assert (shown.target, shown.region, shown.account) == ("aws", "eu-west-1", ACCOUNT)
    assert shown.labels == {"where": "eu-west-1"}
    assert state["cloud_account"] == {
        "aws": {"region": "eu-west-1", "account_id": ACCOUNT},
        "azure": None,
        "gcp": None,
    }


@pytest.mark.parametrize(
    ("given", "problem", "told"),
    [
        ({}, BadPlace, "needs a region"),
        ({"region": "europe-west1"}, BadPlace, "no region of `aws`"),
        ({"region": "eu-west-1", "account": "acme"}, BadPlace, "no account id of `aws`"),
        ({"region": "eu-west-1", "here": True}, InvalidInput, "here"),
    ],
)
async def test_an_install_without_a_proper_place_is_refused(
    world: World, given: dict[str, Any], problem: type[Exception], told: str
) -> None:
    await make_app(world.deps, world.user, cloud="aws")

    with pytest.raises(problem, match=told):
        await make_app_install(world.deps, world.user, "shop", provision=False, **given)


@pytest.mark.parametrize("field", ["region", "account", "tenant"])
async def test_only_an_install_of_an_app_for_a_cloud_has_a_place(world: World, field: str) -> None:
    await make_app(world.deps, world.user)

    with pytest.raises(BadPlace, match="an install on `local` has no"):
        await make_app_install(world.deps, world.user, "shop", **{field: "eu-west-1"})
    with pytest.raises(InvalidInput, match="without an app"):
        await installs.create_install(
            world.deps, world.user, NewInstall.model_validate({"name": "x", field: "eu-west-1"})
        )


async def sync_file(world: World, **place: str) -> tuple[bool, str]:
    file = InstallConfig(name="acme", inputs={"domain": "a.test"}, **place)
    done = await config_files.sync_installs(
        world.deps, world.user, SyncInstalls(app="shop", installs=[file])
    )
    return done.applied, done.installs[0].problem


async def test_a_file_names_the_place_of_its_install_which_does_not_move(world: World) -> None:
    await make_app(world.deps, world.user, cloud="aws")

    created = await sync_file(world, region="eu-west-1")
    again = await sync_file(world, region="eu-west-1")
    moved = await sync_file(world, region="us-east-1")

    assert (created, again) == ((True, ""), (True, ""))
    assert moved == (
        False,
        "the region in the file is `us-east-1`, and that of the install is `eu-west-1`",
    )
