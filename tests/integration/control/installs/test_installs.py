"""Installs of apps: created whole or not at all, listed, labelled, given away."""

import pytest
from sqlalchemy import select

from exclave.base.errors import Conflict, Forbidden, InvalidInput, NotFound
from exclave.control.dispatch import runners
from exclave.control.installs import installs, state_views, workflow_requests
from exclave.control.installs.input_validation import BadInputs
from exclave.control.installs.installs import Wanted
from exclave.control.workflows import workflows
from exclave.domain.identity import InstallId, Role, RunnerId, ScopeKind
from exclave.domain.installs import InstallState, ManagedBy, PartState
from exclave.domain.workflows import WorkflowId
from exclave.storage import app_installs, apps, install_parts
from exclave.storage.engine.database import Tx
from exclave.storage.tables import metadata
from exclave.wire.installs import NewInstall, ReadmeReply, StartWork, WorkflowKind
from exclave.wire.workflows import WorkflowState
from tests.integration.control.conftest import World
from tests.integration.control.rows_kit import count_rows
from tests.support.installs import make_app, make_app_install
from tests.support.world import enrol_fake_runner, make_install, make_org, make_user


async def test_an_install_is_whole_from_its_first_moment(world: World) -> None:
    await make_app(world.deps, world.user)

    made = await make_app_install(
        world.deps, world.user, "shop", inputs={"api_key": "s3cret"}, labels={"tier": "gold"}
    )

    assert (made.app, made.state, made.target, made.config_version) == (
        "shop",
        "provisioning",
        "local",
        1,
    )
    shown = await installs.show_install(world.deps, world.user, InstallId(made.id))
    assert [part.part for part in shown.parts] == [
        "sandbox",
        "component:network",
        "component:api",
        "component:web",
        "component:jobs",
    ]
    assert {part.state for part in shown.parts} == {"absent"}
    assert [(flow.id, flow.name) for flow in shown.workflows] == [(made.workflow_id, "provision")]
    state = await state_views.show_state(world.deps, world.user, InstallId(made.id))
    assert (state.version, state.cause) == (1, "created")
    assert state.document["labels"] == {"tier": "gold"}
    assert state.document["inputs"]["inputs"] == {  # type: ignore[index,call-overload]
        "domain": "acme.test",
        "replicas": "2",
        "debug": "false",
        "zone": "a",
        "api_key": "((exclave:input:api_key))",
    }
    assert (await count_rows(world.deps))["stack_versions"] == 1


async def test_nothing_secret_is_stored_in_clear(world: World) -> None:
    await make_app(world.deps, world.user)
    await make_app_install(world.deps, world.user, "shop", inputs={"api_key": "s3cret-value"})

    def dump(tx: Tx) -> str:
        return "".join(str(tx.all(select(table))) for table in metadata.sorted_tables)

    assert "s3cret-value" not in await world.deps.db.read(dump)


@pytest.mark.parametrize(
    ("wish", "problem", "told"),
    [
        ({"app": "shop"}, BadInputs, "`domain`: it is required"),
        (
            {"app": "shop", "inputs": {"domain": "a", "zone": "b"}},
            BadInputs,
            "the customer sets it",
        ),
        ({"app": "shop", "inputs": {"domain": "a", "replicas": "x"}}, BadInputs, "not a number"),
        (
            {"app": "shop", "inputs": {"domain": "a", "debugg": "x"}},
            BadInputs,
            "Did you mean `debug`?",
        ),
        ({"app": "nowhere"}, NotFound, "there is no such app"),
        ({"app": "empty"}, Conflict, "was never synced"),
        ({"app": "clouds"}, Conflict, "is for `mars`"),
        (
            {"app": "shop", "name": "prod", "inputs": {"domain": "a"}},
            Conflict,
            "named `prod` already",
        ),
        ({"inputs": {"domain": "a"}}, InvalidInput, "without an app"),
        ({"here": True}, InvalidInput, "without an app"),
        ({"app": "shop", "here": True}, InvalidInput, "is for `exclave dev`"),
    ],
)
async def test_a_refused_install_leaves_nothing_behind(
    world: World, wish: dict[str, object], problem: type[Exception], told: str
) -> None:
    deps, user = world.deps, world.user
    await make_app(deps, user)
    await make_app(deps, user, "clouds", cloud="mars")
    await deps.db.write(lambda tx: apps.add_app(tx, user.org, deps.ids.new("app"), "empty", "me"))
    before = await count_rows(deps)

    with pytest.raises(problem, match=told):
        await installs.create_install(
            deps, user, NewInstall.model_validate({"name": "new", **wish})
        )

    assert await count_rows(deps) == before


async def test_an_install_may_wait_with_its_provisioning(world: World) -> None:
    await make_app(world.deps, world.user)
    made = await make_app_install(world.deps, world.user, "shop", provision=False)

    assert (made.state, made.workflow_id) == ("new", None)
    begun = await workflow_requests.start_work(
        world.deps, world.user, InstallId(made.id), StartWork(kind=WorkflowKind.PROVISION)
    )
    assert begun.name == "provision"


async def test_an_app_puts_its_labels_on_every_install(world: World) -> None:
    labels = {"tier": "basic", "place": "at-{{ .nuon.install.name }}"}
    await make_app(world.deps, world.user, labels=labels)

    made = await make_app_install(world.deps, world.user, "shop", labels={"tier": "gold"})

    assert made.labels == {"tier": "gold", "place": "at-acme"}


async def test_lists_are_narrowed_by_all_conditions_at_once(world: World) -> None:
    deps, user = world.deps, world.user
    shop, other = await make_app(deps, user), await make_app(deps, user, "other")
    for number in range(4):
        labels = {"tier": "gold" if number % 2 else "basic", "zone": "eu"}
        await make_app_install(deps, user, shop, f"shop-{number}", labels=labels, provision=False)
    await make_app_install(deps, user, other, "other-1", labels={"tier": "gold"})

    async def names(**wanted: object) -> list[str]:
        page = await installs.list_installs(deps, user, "", 100, Wanted(**wanted))  # type: ignore[arg-type]
        return sorted(each.name for each in page.items)

    assert await names() == ["other-1", "prod", "shop-0", "shop-1", "shop-2", "shop-3"]
    assert await names(app="shop") == await names(app=shop) == [f"shop-{n}" for n in range(4)]
    assert await names(labels={"tier": "gold"}) == ["other-1", "shop-1", "shop-3"]
    assert await names(labels={"tier": "gold", "zone": "eu"}) == ["shop-1", "shop-3"]
    assert await names(labels={"tier": "gold"}, app="other") == ["other-1"]
    assert await names(state="provisioning") == ["other-1"]
    assert await names(name="shop-2") == ["shop-2"]
    assert await names(app="nowhere") == await names(labels={"tier": ""}) == []


async def test_pages_go_on_where_the_last_one_ended(world: World) -> None:
    app = await make_app(world.deps, world.user)
    for number in range(5):
        await make_app_install(world.deps, world.user, app, f"i-{number}", labels={"a": "b"})
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await installs.list_installs(
            world.deps, world.user, cursor, 2, Wanted(labels={"a": "b"})
        )
        found += [each.name for each in page.items]
        cursor = page.next

    assert sorted(found) == [f"i-{number}" for number in range(5)]


async def test_another_org_sees_and_changes_nothing(world: World) -> None:
    app = await make_app(world.deps, world.user)
    made = InstallId((await make_app_install(world.deps, world.user, app)).id)
    stranger = await make_org(world.deps, "evil")

    assert (await installs.list_installs(world.deps, stranger, "", 10)).items == []
    by_app = await installs.list_installs(world.deps, stranger, "", 10, Wanted(app=app))
    assert by_app.items == []
    for call in (
        installs.show_install(world.deps, stranger, made),
        installs.set_labels(world.deps, stranger, made, {}),
        installs.set_approve_all(world.deps, stranger, made, on=True),
        installs.set_managed_by(world.deps, stranger, made, ManagedBy.CONFIG),
        installs.delete_install(world.deps, stranger, made, "because"),
        state_views.show_state(world.deps, stranger, made),
        state_views.show_readme(world.deps, stranger, made),
        workflow_requests.start_work(
            world.deps, stranger, made, StartWork(kind=WorkflowKind.DEPLOY_ALL)
        ),
        installs.create_install(world.deps, stranger, NewInstall(name="x", app="shop")),
    ):
        with pytest.raises(NotFound):
            await call


async def test_a_grant_on_an_app_reaches_its_installs_and_no_other(world: World) -> None:
    deps, admin = world.deps, world.user
    app, other = await make_app(deps, admin), await make_app(deps, admin, "other")
    mine = await make_app_install(deps, admin, app, "mine")
    hidden = await make_app_install(deps, admin, other, "hidden")
    scope = {"scope": ScopeKind.APP, "scope_id": app}
    operator = await make_user(deps, admin, Role.OPERATOR, **scope)
    viewer = await make_user(deps, admin, Role.VIEWER, **scope)

    listed = await installs.list_installs(deps, operator, "", 10)
    assert [each.name for each in listed.items] == ["mine"]
    assert (await make_app_install(deps, operator, app, "by-operator")).app == "shop"
    assert mine.workflow_id is not None
    flow = await workflows.show_workflow(deps, operator, WorkflowId(mine.workflow_id))
    assert flow.state is WorkflowState.RUNNING
    with pytest.raises(NotFound):
        await installs.show_install(deps, operator, InstallId(hidden.id))
    with pytest.raises(NotFound):
        await make_app_install(deps, operator, other, "elsewhere")
    with pytest.raises(Forbidden):
        await installs.set_approve_all(deps, operator, InstallId(mine.id), on=True)
    with pytest.raises(Forbidden):
        await make_app_install(deps, operator, app, "unseen", approve_all=True)
    with pytest.raises(Forbidden):
        await installs.set_labels(deps, viewer, InstallId(mine.id), {})
    with pytest.raises(NotFound):
        await make_install(deps, operator, "plain")


async def test_labels_and_approval_are_kept_and_templates_see_them(world: World) -> None:
    app = await make_app(world.deps, world.user)
    made = InstallId((await make_app_install(world.deps, world.user, app)).id)

    await installs.set_labels(world.deps, world.user, made, {"tier": "gold"})
    shown = await installs.set_approve_all(world.deps, world.user, made, on=True)

    assert (shown.labels, shown.approve_all) == ({"tier": "gold"}, True)
    state = await state_views.show_state(world.deps, world.user, made)
    assert (state.version, state.document["labels"]) == (2, {"tier": "gold"})
    begun = await workflow_requests.start_work(
        world.deps, world.user, made, StartWork(kind=WorkflowKind.DEPLOY_ALL)
    )
    assert begun.approve_all


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"kind": "deploy"}, "name the components"),
        ({"kind": "teardown"}, "name the components"),
        ({"kind": "deploy", "components": ["nothing"]}, "no component `nothing`"),
        ({"kind": "provision", "components": ["api"]}, "about the whole install"),
        ({"kind": "teardown_all", "plan_only": True}, "cannot only plan"),
    ],
)
async def test_a_senseless_wish_is_refused(
    world: World, wish: dict[str, object], told: str
) -> None:
    app = await make_app(world.deps, world.user)
    made = InstallId((await make_app_install(world.deps, world.user, app, provision=False)).id)

    with pytest.raises(InvalidInput, match=told):
        await workflow_requests.start_work(
            world.deps, world.user, made, StartWork.model_validate(wish)
        )

    assert (await installs.show_install(world.deps, world.user, made)).workflows == []


async def test_a_drift_scan_looks_at_everything_unless_told_otherwise(world: World) -> None:
    deps, user = world.deps, world.user
    app = await make_app(deps, user)
    made = InstallId((await make_app_install(deps, user, app, provision=False)).id)

    def deploy(tx: Tx) -> None:
        for part in ("sandbox", "component:api"):
            install_parts.save_state(
                tx, user.org, made, part, PartState.ACTIVE, workflow="wfl_" + "0" * 26
            )

    await deps.db.write(deploy)
    begun = await workflow_requests.start_work(
        deps, user, made, StartWork(kind=WorkflowKind.DRIFT_SCAN)
    )

    assert [step.name for step in begun.steps] == ["runner", "sandbox-plan", "api.plan"]


async def test_a_plain_install_knows_nothing_of_apps(world: World) -> None:
    with pytest.raises(Conflict, match="runs no app"):
        await state_views.show_state(world.deps, world.user, InstallId(world.queue))

    shown = await installs.show_install(world.deps, world.user, InstallId(world.queue))
    assert (shown.app, shown.state, shown.parts) == ("", "", [])
    assert [runner.id for runner in shown.runners] == [world.peer.enrolled.runner_id]


async def test_the_readme_is_rendered_and_kept_raw_where_it_cannot_be(world: World) -> None:
    deps, user = world.deps, world.user
    good = await make_app(deps, user)
    bad = await make_app(deps, user, "bad", readme="Hi {{ .nuon.components.nope.outputs.x }}")
    none = await make_app(deps, user, "none", readme="")

    async def read(app: str, name: str) -> ReadmeReply:
        made = await make_app_install(deps, user, app, name)
        return await state_views.show_readme(deps, user, InstallId(made.id))

    rendered = await read(good, "a")
    assert (rendered.text, rendered.rendered) == ("# a\n\nServed at acme.test.\n", True)
    raw = await read(bad, "b")
    assert (raw.text, raw.rendered) == ("Hi {{ .nuon.components.nope.outputs.x }}", False)
    assert "line 1" in raw.warnings[0]
    assert "no README" in (await read(none, "c")).warnings[0]


async def test_the_state_of_a_version_and_of_a_time(world: World) -> None:
    deps, user = world.deps, world.user
    made = InstallId((await make_app_install(deps, user, await make_app(deps, user))).id)
    first = world.clock.now()
    world.clock.advance(60)
    await installs.set_labels(deps, user, made, {"a": "b"})

    async def version(**wanted: object) -> int:
        return (await state_views.show_state(deps, user, made, **wanted)).version  # type: ignore[arg-type]

    assert (await version(), await version(version=1)) == (2, 1)
    assert (await version(at=first), await version(at=world.clock.now())) == (1, 2)
    with pytest.raises(NotFound):
        await version(version=3)


async def set_state(world: World, install: str, state: InstallState) -> None:
    await world.deps.db.write(lambda tx: app_installs.set_state(tx, world.user.org, install, state))


async def test_only_what_is_gone_is_deleted_or_what_somebody_forgets(world: World) -> None:
    deps, user = world.deps, world.user
    app = await make_app(deps, user)
    made = await make_app_install(deps, user, app, inputs={"api_key": "s"})
    install = InstallId(made.id)
    peer = await enrol_fake_runner(deps, user, install)  # type: ignore[arg-type]

    with pytest.raises(Conflict, match="is running"):
        await installs.delete_install(deps, user, install, "it is over")
    second = await workflow_requests.start_work(
        deps, user, install, StartWork(kind=WorkflowKind.DEPROVISION)
    )
    with pytest.raises(Conflict, match="2 workflows of `acme` are running") as caught:
        await installs.delete_install(deps, user, install, "it is over")
    for workflow in (made.workflow_id, second.id):
        assert f"exclave workflows cancel {workflow}" in caught.value.advice
    await workflows.cancel_workflow(deps, user, WorkflowId(second.id))
    await workflows.cancel_workflow(deps, user, WorkflowId(made.workflow_id or ""))
    await set_state(world, install, InstallState.ACTIVE)
    with pytest.raises(Conflict, match="would be left behind"):
        await installs.delete_install(deps, user, install)
    await installs.delete_install(deps, user, install, "the customer has gone")

    with pytest.raises(NotFound):
        await installs.show_install(deps, user, install)
    shown = await runners.show_runner(deps, user, RunnerId(peer.who.runner))
    assert (shown.state, shown.cause) == ("revoked", "its install was deleted")
    again = await make_app_install(deps, user, app)
    assert again.id != made.id
    listed = await installs.list_installs(deps, user, "", 10, Wanted(app=app))
    assert [each.id for each in listed.items] == [again.id]


async def test_a_deprovisioned_install_is_deleted_without_a_reason(world: World) -> None:
    made = await make_app_install(
        world.deps, world.user, await make_app(world.deps, world.user), provision=False
    )
    await set_state(world, made.id, InstallState.DEPROVISIONED)

    await installs.delete_install(world.deps, world.user, InstallId(made.id))

    assert (await installs.list_installs(world.deps, world.user, "", 10)).items[0].name == "prod"
