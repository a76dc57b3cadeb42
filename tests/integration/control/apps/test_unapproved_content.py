"""What a config does without asking anybody is changed only by who may approve."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from exclave.base.errors import Forbidden
from exclave.control.access import authenticate_user
from exclave.control.apps import apps
from exclave.control.deps import Deps
from exclave.control.installs import upgrades
from exclave.control.orgs import accounts
from exclave.domain.identity import InstallId, Role, User
from exclave.wire.apps import NewApp
from exclave.wire.identity import GrantModel, NewToken
from exclave.wire.installs import Upgrade
from tests.support.apps import edit, sync
from tests.support.install_fixture import NOTICEBOARD, make_install_fixture
from tests.support.world import make_user

AUTO = "auto_approve_on_policies_passing"


def add_line(path: str, line: str) -> Callable[[Path], None]:
    def change(app: Path) -> None:
        text = (app / path).read_text()
        (app / path).write_text(f"{line}\n{text}")

    return change


UNASKED: dict[str, Callable[[Path], object]] = {
    "policy:ports": lambda app: edit(app, "policies/ports.rego", "deny", "warn"),
    f"{AUTO} of sandbox": add_line("sandbox.toml", f"{AUTO} = true"),
    f"{AUTO} of api": add_line("components/api.toml", f"{AUTO} = true"),
    "action:greet": lambda app: edit(app, "actions/greet.toml", "is ready", "is owned"),
    "action:check": lambda app: (app / "actions/check.py").write_text("print('owned')\n"),
    "runbook:refresh": lambda app: edit(app, "runbooks/refresh.toml", "[[steps]]", _OWN_STEP),
}
_OWN_STEP = '[[steps]]\nname = "own"\ntype = "action"\ncommand = "id"\n\n[[steps]]'


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "noticeboard"
    shutil.copytree(NOTICEBOARD, folder)
    return folder


@pytest.mark.parametrize("part", list(UNASKED))
async def test_an_operator_does_not_sync_what_nobody_is_asked_about_later(
    deps: Deps, user: User, app: Path, part: str
) -> None:
    await apps.create_app(deps, user, NewApp(name="noticeboard"))
    first = await sync(deps, user, app)
    operator = await make_user(deps, user, Role.OPERATOR)
    UNASKED[part](app)

    with pytest.raises(Forbidden, match="right to approve") as caught:
        await sync(deps, operator, app)
    tried = await sync(deps, operator, app, dry_run=True)
    shown = await apps.show_app(deps, user, "noticeboard")

    assert part in caught.value.message
    assert tried.changed
    assert shown.config is not None
    assert first.config is not None
    assert shown.config.version == first.config.version
    assert (await sync(deps, await _make_both(deps, user), app)).changed


async def test_an_operator_syncs_what_a_gate_asks_about_and_takes_automatic_approval_away(
    deps: Deps, user: User, app: Path
) -> None:
    add_line("sandbox.toml", f"{AUTO} = true")(app)
    await apps.create_app(deps, user, NewApp(name="noticeboard"))
    await sync(deps, user, app)
    operator = await make_user(deps, user, Role.OPERATOR)
    edit(app, "sandbox.toml", f"{AUTO} = true\n", "")
    (app / "modules/api/more.tf").write_text('output "more" { value = 1 }\n')

    assert (await sync(deps, operator, app)).changed


async def test_an_operator_does_not_go_back_to_a_config_that_asks_less(
    deps: Deps, user: User, app: Path
) -> None:
    add_line("sandbox.toml", f"{AUTO} = true")(app)
    life, _ = await make_install_fixture(deps, user, app, approve_all=False, provision=False)
    edit(app, "sandbox.toml", f"{AUTO} = true\n", "")
    await sync(deps, user, app)
    install, operator = InstallId(life.install), await make_user(deps, user, Role.OPERATOR)
    await upgrades.upgrade_install(deps, operator, install, Upgrade())

    with pytest.raises(Forbidden, match=f"{AUTO} of sandbox"):
        await upgrades.upgrade_install(deps, operator, install, Upgrade(config=1))
    moved = await upgrades.upgrade_install(deps, user, install, Upgrade(config=1))

    assert moved.to_version == 1


async def _make_both(deps: Deps, admin: User) -> User:
    grants = [GrantModel(role=Role.OPERATOR), GrantModel(role=Role.APPROVER)]
    made = await accounts.create_token(
        deps, admin, NewToken(name="both", account="both", grants=grants)
    )
    return await authenticate_user(deps, made.token)
