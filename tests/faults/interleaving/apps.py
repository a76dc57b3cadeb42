"""An app with two parts to build and one install, as rows: no scenario needs a real archive."""

from dataclasses import dataclass

from exclave.base.json_values import JsonObject
from exclave.control.builds import builds as building
from exclave.control.deps import Deps
from exclave.control.install_state.state import first_state
from exclave.domain.configs import NewConfig
from exclave.domain.four_eyes import Author
from exclave.domain.identity import InstallId, OrgId, QueueId, QueueKind, RunnerId
from exclave.domain.installs import InstallState, NewAppInstall
from exclave.domain.runners import NewRunner
from exclave.domain.schedules import Schedule, ScheduleKind
from exclave.domain.stacks import Cloud
from exclave.jobspec.builds import BuildTarget
from exclave.storage import app_installs, apps, builds, configs, queues, runners, schedules
from exclave.storage.engine.database import Tx
from exclave.wire.jobs import JobKind
from exclave.wire.runner import PROTOCOL
from exclave.wire.specs import UploadedSource

_OUTLINE: JsonObject = {
    "components": [], "order": [], "actions": [], "secrets": [], "sandbox": None,
    "cloud": "local", "folders": {},
}  # fmt: skip


@dataclass(frozen=True)
class App:
    """Names of what was made."""

    config: str
    builds: tuple[str, str]
    builder: RunnerId
    build_queue: QueueId


def add_app(tx: Tx, deps: Deps, org: OrgId, install: QueueId) -> App:
    """Make an install run an app; its two builds wait for a build runner."""
    app, config = deps.ids.new("app"), deps.ids.new("cfg")
    apps.add_app(tx, org, app, app, "test")
    configs.add_config(
        tx,
        org,
        NewConfig(
            id=config,
            app_id=app,
            version=1,
            digest="",
            archive="",
            archive_digest="",
            outline=_OUTLINE,
            author=Author("test"),
        ),
    )
    apps.set_config(tx, org, app, config)
    new = NewAppInstall(app, config, "test", Cloud.LOCAL, state=InstallState.ACTIVE)
    app_installs.add_app_install(tx, org, install, new)
    first_state(tx, org, install, [], {})
    made = (deps.ids.new("bui"), deps.ids.new("bui"))
    row = configs.find_config(tx, org, config)
    assert row is not None
    source = UploadedSource(config_id=config, archive_digest="sha256:" + "0" * 64, directory=".")
    fresh = [
        (build, BuildTarget(f"component:c{number}", "terraform_module", source, build, 300.0))
        for number, build in enumerate(made)
    ]
    building._begin(tx, deps, org, "test", row, fresh)
    for build, wanted in fresh:
        builds.pin(tx, org, config, wanted.part, build)
    queue, builder = queues.find_build_queue(tx, org), RunnerId(deps.ids.new("run"))
    add_runner(tx, org, queue, QueueKind.BUILD, builder)
    return App(config, made, builder, queue)


def add_schedule(tx: Tx, deps: Deps, org: OrgId, install: QueueId) -> str:
    """Give the install a schedule whose tick is due."""
    schedule = deps.ids.new("sch")
    schedules.add_schedule(
        tx,
        Schedule(
            org=org,
            id=schedule,
            install_id=InstallId(install),
            kind=ScheduleKind.DRIFT,
            subject="sandbox",
            cron="* * * * *",
            next_at=tx.now,
        ),
    )
    return schedule


def add_runner(tx: Tx, org: OrgId, queue: QueueId, kind: QueueKind, runner: RunnerId) -> None:
    """Add a runner whose handshake nobody asks for."""
    kinds = [JobKind.BUILD] if kind is QueueKind.BUILD else [JobKind.SCRIPT, JobKind.NOOP]
    runners.add_runner(
        tx,
        NewRunner(
            org_id=org,
            id=runner,
            queue_id=queue,
            kind=kind,
            name=runner,
            public_key=runner,
            version="test",
            protocol=PROTOCOL,
            capabilities=kinds,
        ),
    )
