"""Stacks of clouds on the control plane: versions, files, links."""

import hashlib
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from exclave.base.errors import NotFound
from exclave.control.installs import inputs, installs, upgrades
from exclave.control.stacks import cloud_stacks, cloud_views, stacks
from exclave.control.stacks.cloud_files import StackRefused
from exclave.control.stacks.program_archives import NoProgram
from exclave.domain.identity import InstallId
from exclave.storage import stacks as queries
from exclave.wire.installs import SetInputs, Upgrade
from exclave.wire.stacks import StackCreated
from tests.integration.control.conftest import World
from tests.integration.control.stacks.cloud_kit import ACCOUNT, SECRETS, CloudShop, open_cloud_shop
from tests.support.installs import add_config, make_app, make_app_install
from tests.support.toy_cloud_stack import TOO_LARGE, write_archives
from tests.support.world import make_org

ROLE = {
    "name": "{{ .nuon.install.id }}-deploy",
    "type": "maintenance",
    "policies": [{"name": "own", "contents": '{"Version": "2012-10-17", "Statement": []}'}],
}


@pytest.fixture
async def shop(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CloudShop:
    return await open_cloud_shop(world, monkeypatch, tmp_path)


def find_code(page: str) -> str:
    return page.rstrip("/").rpartition("/")[2]


async def fetch(shop: CloudShop, code: str, which: str, name: str) -> cloud_views.Served:
    return await cloud_views.fetch_file(shop.deps, code, which, name, "192.0.2.1")


async def test_the_files_of_a_version_are_rendered_once_and_hold_no_code(shop: CloudShop) -> None:
    first, second = await shop.create(), await shop.create()

    assert (first.version, second.version) == (1, 1)
    assert [file.name for file in first.files] == [
        "stack.template.json",
        "terraform/main.tf.json",
        "terraform/notes/README.md",
        "aws.json",
        "aws.zip",
        "PERMISSIONS.md",
        "permissions.json",
    ]
    assert [file.sha256 for file in first.files] == [file.sha256 for file in second.files]
    text = first.files[0].content
    assert json.loads(text)["secrets"] == ["db_password"]
    assert len(json.loads(text)["program"]) == 64
    assert len(json.loads(text)["keys"]) == 1
    assert "xcv_" not in text
    assert "xce_" not in text
    assert first.instructions.commands == [f"toy create {first.page}1/aws.json"]
    assert [parameter.name for parameter in first.parameters] == ["db_password", "RunnerEnabled"]


async def test_the_archive_has_the_terraform_form_in_fixed_bytes(shop: CloudShop) -> None:
    made = await shop.create()

    served = await fetch(shop, find_code(made.page), "1", "aws.zip")

    with zipfile.ZipFile(io.BytesIO(served.data)) as archive:
        assert archive.namelist() == ["main.tf.json", "notes/README.md"]
        assert {info.date_time[0] for info in archive.infolist()} == {1980}
    listed = {file.name: file.sha256 for file in made.files}
    assert hashlib.sha256(served.data).hexdigest() == listed["aws.zip"] == served.etag


async def test_every_link_works_until_it_is_revoked_or_ninety_days_old(shop: CloudShop) -> None:
    one = await shop.create()
    shop.clock.advance(1)
    two = await shop.create()
    listed = await cloud_stacks.list_links(shop.deps, shop.user, shop.install)

    await cloud_stacks.revoke_link(shop.deps, shop.user, shop.install, one.link_id)

    assert [link.id for link in listed.items] == [one.link_id, two.link_id]
    with pytest.raises(NotFound, match="works no more"):
        await fetch(shop, find_code(one.page), "1", "aws.json")
    assert (await fetch(shop, find_code(two.page), "latest", "aws.json")).data
    shop.clock.advance(91 * 86400)
    with pytest.raises(NotFound, match="works no more"):
        await fetch(shop, find_code(two.page), "1", "aws.json")


async def test_a_link_of_an_install_shows_nothing_of_another(shop: CloudShop, world: World) -> None:
    made = await shop.create()
    stranger = await make_org(world.deps, "other")

    for call in (
        cloud_stacks.list_links(shop.deps, stranger, shop.install),
        cloud_stacks.list_versions(shop.deps, stranger, shop.install),
        cloud_stacks.revoke_link(shop.deps, stranger, shop.install, made.link_id),
    ):
        with pytest.raises(NotFound):
            await call
    assert (await fetch(shop, find_code(made.page), "1", "aws.json")).data


async def test_the_links_of_an_install_end_with_it(shop: CloudShop) -> None:
    made = await shop.create()

    await installs.delete_install(shop.deps, shop.user, shop.install)

    with pytest.raises(NotFound, match="works no more"):
        await cloud_views.show_page(shop.deps, find_code(made.page), "192.0.2.1")


@pytest.mark.parametrize("which", ["0", "2", "-1", "\u0661", "latest/", "", "9" * 30])
async def test_a_version_that_is_none_is_not_found(shop: CloudShop, which: str) -> None:
    made = await shop.create()

    with pytest.raises(NotFound):
        await fetch(shop, find_code(made.page), which, "aws.json")


async def test_only_an_upgrade_that_asks_for_more_makes_a_version(shop: CloudShop) -> None:
    await add_config(shop.deps, shop.user, shop.app, cloud="aws", secrets=SECRETS, readme="new")
    await upgrades.upgrade_install(shop.deps, shop.user, shop.install, Upgrade())
    same = await shop.show_states()

    roles = {"permission": [ROLE]}
    await add_config(shop.deps, shop.user, shop.app, cloud="aws", secrets=SECRETS, more_parts=roles)
    await upgrades.upgrade_install(shop.deps, shop.user, shop.install, Upgrade())

    assert same == [(1, "awaiting")]
    assert await shop.show_states() == [(2, "awaiting"), (1, "superseded")]
    content = json.loads((await shop.create()).files[0].content)
    assert content["roles"] == [f"{shop.install}-deploy"]


async def test_an_input_that_the_stack_is_made_from_makes_a_version(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    role = {**ROLE, "name": "{{ .nuon.inputs.inputs.domain }}"}
    shop = await open_cloud_shop(world, monkeypatch, tmp_path, more_parts={"permission": [role]})

    await inputs.set_inputs(shop.deps, shop.user, shop.install, SetInputs(values={"replicas": "3"}))
    unread = await shop.show_states()
    await inputs.set_inputs(
        shop.deps, shop.user, shop.install, SetInputs(values={"domain": "b.test"})
    )

    assert unread == [(1, "awaiting")]
    assert await shop.show_states() == [(2, "awaiting"), (1, "superseded")]


async def test_a_stack_that_the_cloud_would_refuse_has_no_files(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shop = await open_cloud_shop(
        world, monkeypatch, tmp_path, more_parts={"permission": [{**ROLE, "name": TOO_LARGE}]}
    )

    with pytest.raises(StackRefused, match="it is too large"):
        await shop.create()


async def test_without_archives_of_the_program_there_are_no_files(shop: CloudShop) -> None:
    without = replace(shop, deps=replace(shop.deps, bundles=None))

    with pytest.raises(NoProgram):
        await without.create()

    assert (await shop.create()).version == 1


async def test_the_stack_of_aws_is_served_with_its_own_template_and_commands(
    world: World, tmp_path: Path
) -> None:
    deps = replace(world.deps, bundles=write_archives(tmp_path))
    parts = {"permission": [ROLE], "stack": [{"name": ""}]}
    await make_app(deps, world.user, cloud="aws", secrets=SECRETS, more_parts=parts)
    made = await make_app_install(
        deps, world.user, "shop", provision=False, region="eu-west-1", account=ACCOUNT
    )

    created = await stacks.create_stack(deps, world.user, InstallId(made.id))

    files = {file.name: file for file in created.files}
    template = json.loads(files["aws.template.json"].content)
    assert files["aws.json"].sha256 == files["aws.template.json"].sha256
    assert "RunnerEnabled" in template["Parameters"]
    assert f"{made.id}-deploy" in files["aws.template.json"].content
    assert f"{made.id}-deploy" in files["PERMISSIONS.md"].content
    assert any(files["aws.template.json"].url in line for line in list_commands(created))
    assert any("it has no statement" in finding for finding in created.findings)


def list_commands(created: StackCreated) -> list[str]:
    """List the lines that the customer pastes, of all steps."""
    return [line for step in created.instructions.steps for line in step.commands]


async def test_nothing_of_a_code_is_stored(shop: CloudShop) -> None:
    made = await shop.create()

    model = await shop.deps.db.read(lambda tx: queries.find_model(tx, shop.user.org, made.id))

    assert model is not None
    assert find_code(made.page) not in json.dumps(model)
