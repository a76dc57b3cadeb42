"""Builds of config versions: pinned by key, shared, tried again, waited for."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from exclave.appconfig.stored.parts import FrozenPart
from exclave.base.digests import digest_json
from exclave.base.errors import Forbidden, InvalidInput, NotFound
from exclave.base.json_values import JsonObject
from exclave.control.builds import builds
from exclave.control.job_specs import component_types
from exclave.control.workflows import jobs, workflows
from exclave.domain.configs import NewConfig
from exclave.domain.four_eyes import Author
from exclave.domain.identity import Grant, QueueId, Role, ScopeKind, User
from exclave.domain.jobs import JobId, JobKind
from exclave.domain.workflows import WorkflowId, WorkflowState
from exclave.storage import apps, configs, queues
from exclave.storage import builds as stored
from exclave.storage import jobs as stored_jobs
from exclave.storage.engine.database import Tx
from exclave.wire.builds import BuildReply, BuildState, NewBuild
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from tests.integration.control.conftest import World
from tests.support.world import FakeRunner, enrol_fake_runner, make_org

DIGEST = "sha256:" + "a" * 64
ARCHIVE = "sha256:" + "b" * 64
BUILT = Outcome(
    state=OutcomeState.SUCCEEDED,
    reason=Reason.COMPLETED,
    outputs={"digest": DIGEST, "commit": "c" * 40, "size": 5, "files": 1, "provenance": DIGEST},
)
FAILED = Outcome(
    state=OutcomeState.FAILED,
    reason=Reason.SOURCE_INVALID,
    message="component `db`, step check: main.tf:3: not UTF-8",
)


def git(repo: str, branch: str = "main", directory: str = ".") -> dict[str, Any]:
    return {"public_repo": {"repo": repo, "branch": branch, "directory": directory}}


def here(directory: str) -> dict[str, Any]:
    return {"public_repo": {"repo": ".", "directory": directory}}


class Vendor:
    """An app whose versions are written straight into the database."""

    def __init__(self, world: World, peer: FakeRunner) -> None:
        self.world = world
        self.deps = world.deps
        self.org = world.user.org
        self.peer = peer
        self.app = self.deps.ids.new("app")

    async def sync(
        self, components: Mapping[str, Any], folders: Mapping[str, str] | None = None, **more: Any
    ) -> tuple[str, list[str]]:
        """Store a version; answer it and the builds that it began."""
        return await self.deps.db.write(lambda tx: self._sync(tx, components, folders or {}, more))

    async def ensure(self, config: str) -> list[str]:
        return await self.deps.db.write(
            lambda tx: builds.ensure_builds(tx, self.deps, self.org, "dev", config)
        )

    async def pinned(self, config: str, part: str) -> Any:
        return await self.deps.db.read(lambda tx: stored.find_pinned(tx, self.org, config, part))

    async def show(self, build: str) -> BuildReply:
        return await builds.show_build(self.deps, self.world.user, build)

    async def read_spec(self, build: BuildReply) -> JsonObject:
        job = JobId(build.job_id or "")
        row = await self.deps.db.read(lambda tx: stored_jobs.find_job(tx, self.org, job))
        assert row is not None
        return row.spec

    async def create(self, part: str, commit: str | None = None) -> BuildReply:
        wish = NewBuild(app="demo", part=part, commit=commit)
        return await builds.create_build(self.deps, self.world.user, wish)

    def _sync(
        self,
        tx: Tx,
        components: Mapping[str, Any],
        folders: Mapping[str, str],
        more: Mapping[str, Any],
    ) -> tuple[str, list[str]]:
        if apps.find_app(tx, self.org, self.app) is None:
            apps.add_app(tx, self.org, self.app, "demo", "dev")
        config = self.deps.ids.new("cfg")
        configs.add_config(
            tx,
            self.org,
            NewConfig(
                id=config,
                app_id=self.app,
                digest=digest_json(config),
                version=configs.read_last_version(tx, self.org, self.app) + 1,
                archive="x",
                archive_digest=ARCHIVE,
                outline={"folders": folders},
                author=Author("dev"),
            ),
        )
        parts = [
            ("component", name, {"name": name, "type": "terraform_module", **value})
            for name, value in components.items()
        ]
        parts += [(section, value.get("name", ""), value) for section, value in more.items()]
        configs.add_parts(
            tx,
            self.org,
            config,
            [FrozenPart(section, name, "h", value) for section, name, value in parts],
        )
        apps.set_config(tx, self.org, self.app, config)
        return config, builds.ensure_builds(tx, self.deps, self.org, "dev", config)


@pytest.fixture
async def vendor(world: World) -> Vendor:
    def find(tx: Tx) -> QueueId:
        return queues.find_build_queue(tx, world.user.org)

    queue = await world.deps.db.read(find)
    peer = await enrol_fake_runner(world.deps, world.user, queue, "builder")
    peer.kinds = (JobKind.BUILD, JobKind.TERRAFORM, JobKind.NOOP)
    return Vendor(world, peer)


async def test_every_part_with_a_source_is_built_at_once(vendor: Vendor) -> None:
    config, made = await vendor.sync(
        {"db": git("acme/db"), "web": here("web"), "chart": {"type": "helm_chart"}},
        {"web": DIGEST},
        sandbox=git("acme/sandbox"),
        action={
            "name": "health",
            "steps": [{"name": "check", **git("acme/scripts")}, {"name": "x"}],
        },
    )

    assert len(made) == 4
    assert len(await vendor.peer.work(BUILT, free=10)) == 4
    parts = ["sandbox", "component:db", "component:web", "action:health:check"]
    rows = [await vendor.pinned(config, part) for part in parts]
    assert [row.state for row in rows] == ["succeeded"] * 4
    assert [row.digest for row in rows] == [DIGEST] * 4
    assert rows[1].source["url"] == "https://github.com/acme/db"
    assert await vendor.pinned(config, "component:chart") is None
    shown = await vendor.show(made[0])
    assert (shown.app, shown.configs, shown.state) == ("demo", [1], BuildState.SUCCEEDED)
    assert shown.job_id
    flow = await workflows.show_workflow(
        vendor.deps, vendor.world.user, WorkflowId(shown.workflow_id or "")
    )
    assert flow.state is WorkflowState.SUCCEEDED


async def test_what_is_built_already_is_instant_and_what_changed_is_not(vendor: Vendor) -> None:
    both = {"db": git("acme/db"), "web": here("web")}
    await vendor.sync(both, {"web": DIGEST})
    await vendor.peer.work(BUILT)

    second, again = await vendor.sync(both, {"web": DIGEST})
    third, changed = await vendor.sync(both, {"web": ARCHIVE})
    fourth, moved = await vendor.sync(
        {"db": git("acme/db", "v2"), "web": here("web")}, {"web": DIGEST}
    )

    assert again == []
    assert (await vendor.pinned(second, "component:web")).state == "succeeded"
    assert [(await vendor.show(one)).part for one in changed] == ["component:web"]
    assert (await vendor.pinned(third, "component:db")).state == "succeeded"
    assert [(await vendor.show(one)).part for one in moved] == ["component:db"]
    assert (await vendor.pinned(fourth, "component:web")).state == "succeeded"


async def test_a_running_build_is_shared(vendor: Vendor) -> None:
    first, made = await vendor.sync({"db": git("acme/db")})

    second, again = await vendor.sync({"db": git("acme/db"), "copy": git("acme/db")})

    assert again == []
    rows = [await vendor.pinned(one, "component:db") for one in (first, second)]
    assert {row.id for row in rows} == set(made)
    assert (await vendor.pinned(second, "component:copy")).id == made[0]
    assert len(await vendor.peer.work(BUILT)) == 1
    assert (await vendor.show(made[0])).configs == [1, 2]


async def test_two_parts_with_one_source_are_one_build(vendor: Vendor) -> None:
    config, made = await vendor.sync({"a": git("acme/db"), "b": git("acme/db")})

    assert len(made) == 1
    assert (await vendor.pinned(config, "component:b")).id == made[0]


async def test_a_failed_build_tells_why_and_is_tried_again_by_the_next_sync(
    vendor: Vendor,
) -> None:
    config, made = await vendor.sync({"db": git("acme/db")})
    await vendor.peer.work(FAILED)
    failed = await vendor.show(made[0])

    again = await vendor.ensure(config)
    await vendor.peer.work(BUILT)

    assert (failed.state, failed.error) == (BuildState.FAILED, FAILED.message)
    assert len(again) == 1
    assert (await vendor.pinned(config, "component:db")).id == again[0]
    assert await vendor.ensure(config) == []


async def test_building_again_replaces_the_pin_when_it_has_succeeded(vendor: Vendor) -> None:
    config, made = await vendor.sync({"db": git("acme/db")})
    await vendor.peer.work(BUILT)

    again = await vendor.create("db", "d" * 40)
    while_running = (await vendor.pinned(config, "component:db")).id
    await vendor.peer.work(FAILED)
    after_failure = (await vendor.pinned(config, "component:db")).id
    third = await vendor.create("component:db")
    await vendor.peer.work(BUILT)

    assert again.source.model_dump()["commit"] == "d" * 40
    assert [while_running, after_failure] == [made[0], made[0]]
    assert (await vendor.pinned(config, "component:db")).id == third.id


async def test_an_older_version_keeps_what_it_pinned(vendor: Vendor) -> None:
    first, made = await vendor.sync({"db": git("acme/db")})
    await vendor.peer.work(BUILT)
    second, _ = await vendor.sync({"db": git("acme/db")})

    again = await vendor.create("db")
    await vendor.peer.work(BUILT)

    assert (await vendor.pinned(first, "component:db")).id == made[0]
    assert (await vendor.pinned(second, "component:db")).id == again.id


async def test_a_build_without_an_artifact_is_a_failure(vendor: Vendor) -> None:
    _, made = await vendor.sync({"db": git("acme/db")})

    await vendor.peer.work(BUILT.model_copy(update={"outputs": {"digest": "latest"}}))

    assert (await vendor.show(made[0])).error == "the build runner named no artifact"


async def test_a_build_that_is_cancelled_before_it_runs_has_failed(vendor: Vendor) -> None:
    config, made = await vendor.sync({"db": git("acme/db"), "web": git("acme/web")})
    shown = [await vendor.show(one) for one in made]

    await jobs.cancel_job(vendor.deps, vendor.world.user, JobId(shown[0].job_id or ""))
    flow = WorkflowId(shown[1].workflow_id or "")
    await workflows.cancel_workflow(vendor.deps, vendor.world.user, flow)

    ended = [await vendor.show(one) for one in made]
    assert [one.state for one in ended] == [BuildState.FAILED] * 2
    assert not await vendor.deps.db.read(lambda tx: stored.has_pending(tx, vendor.org, config))


async def test_pending_tells_whether_a_version_can_be_deployed(vendor: Vendor) -> None:
    config, _ = await vendor.sync({"db": git("acme/db")})

    before = await vendor.deps.db.read(lambda tx: stored.has_pending(tx, vendor.org, config))
    await vendor.peer.work(BUILT)
    after = await vendor.deps.db.read(lambda tx: stored.has_pending(tx, vendor.org, config))

    assert (before, after) == (True, False)


async def test_install_runners_never_get_builds_and_build_runners_nothing_else(
    vendor: Vendor,
) -> None:
    install = vendor.world.peer
    install.kinds = tuple(JobKind)
    await vendor.sync({"db": git("acme/db")})

    assert (await install.poll()).offers == []
    vendor.peer.kinds = (JobKind.TERRAFORM, JobKind.SECRETS, JobKind.ACTION)
    assert (await vendor.peer.poll()).offers == []
    vendor.peer.kinds = tuple(JobKind)
    assert len((await vendor.peer.poll()).offers) == 1


async def test_lists_are_narrowed_by_app_part_and_state(vendor: Vendor) -> None:
    await vendor.sync({"db": git("acme/db"), "web": git("acme/web")})
    await vendor.peer.work(BUILT, free=1)

    async def find(**wanted: Any) -> int:
        narrow = {"app": None, "part": None, "state": None, **wanted}
        page = await builds.list_builds(
            vendor.deps, vendor.world.user, cursor="", limit=10, **narrow
        )
        return len(page.items)

    assert await find() == 2
    assert await find(app="demo") == 2
    assert await find(app="other") == 0
    assert await find(part="db") == await find(part="component:db") == 1
    assert await find(state=BuildState.SUCCEEDED) == 1


async def test_builds_of_others_do_not_exist(vendor: Vendor) -> None:
    _, made = await vendor.sync({"db": git("acme/db")})
    stranger = await make_org(vendor.deps, "stranger")
    user = vendor.world.user
    viewer = User(user.org, user.account, "v", user.token, (Grant(Role.VIEWER, ScopeKind.ORG, ""),))
    elsewhere = User(
        user.org, user.account, "e", user.token, (Grant(Role.ADMIN, ScopeKind.APP, "app_x"),)
    )

    for who in (stranger, elsewhere):
        with pytest.raises(NotFound):
            await builds.show_build(vendor.deps, who, made[0])
        with pytest.raises(NotFound):
            await builds.create_build(vendor.deps, who, NewBuild(app="demo", part="db"))
        page = await builds.list_builds(
            vendor.deps, who, cursor="", limit=10, app=None, part=None, state=None
        )
        assert page.items == []
    with pytest.raises(Forbidden):
        await builds.create_build(vendor.deps, viewer, NewBuild(app="demo", part="db"))


async def test_a_wrong_part_or_a_commit_of_the_app_directory_is_refused(vendor: Vendor) -> None:
    await vendor.sync({"web": here("web")}, {"web": DIGEST})

    with pytest.raises(InvalidInput, match="no part `db`") as caught:
        await vendor.create("db")
    with pytest.raises(InvalidInput, match="has no commits"):
        await vendor.create("web", "d" * 40)

    assert caught.value.advice == "Its parts: web."


ROOT_RULE = {
    "name": "root",
    "type": "docker_build",
    "engine": "opa",
    "components": ["web"],
    "contents": "package nuon",
}


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the components of the tests by policies when they are built, as images are."""
    types = component_types.COMPONENT_TYPES
    checked = replace(types["terraform_module"], policy="docker_build")
    monkeypatch.setattr(component_types, "COMPONENT_TYPES", {**types, "terraform_module": checked})


@pytest.mark.usefixtures("images")
async def test_an_image_is_built_with_its_policies_and_again_if_they_change(
    vendor: Vendor,
) -> None:
    both = {"db": git("acme/db"), "web": git("acme/web")}
    _, first = await vendor.sync(both, policy=ROOT_RULE)
    found = {"name": "root", "level": "pass", "message": "runs as 1000"}
    passed = BUILT.model_copy(update={"outputs": {**BUILT.outputs, "policies": [found]}})
    await vendor.peer.work(passed)

    _, same = await vendor.sync(both, policy=ROOT_RULE)
    _, changed = await vendor.sync(both, policy={**ROOT_RULE, "contents": "package nuon\n"})

    shown = {build.part: build for build in [await vendor.show(one) for one in first]}
    web, db = [await vendor.read_spec(shown[f"component:{name}"]) for name in ("web", "db")]
    assert (web["policies"], "policies" in db) == (
        [{"name": "root", "rego": "package nuon"}],
        False,
    )
    assert [one.message for one in shown["component:web"].policies] == ["runs as 1000"]
    assert same == []
    assert [(await vendor.show(one)).part for one in changed] == ["component:web"]


@pytest.mark.usefixtures("images")
async def test_a_denied_image_is_no_build_that_can_be_used(vendor: Vendor) -> None:
    message = "component `web`, step policies: policy `root` denies this image: it runs as root"
    config, [made] = await vendor.sync({"web": git("acme/web")}, policy=ROOT_RULE)
    denied = Outcome(state=OutcomeState.FAILED, reason=Reason.POLICY_DENIED, message=message)

    await vendor.peer.work(denied)

    shown = await vendor.show(made)
    assert (shown.state, shown.error, shown.digest) == (BuildState.FAILED, message, "")
    assert len(await vendor.ensure(config)) == 1
