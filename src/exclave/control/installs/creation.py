"""Create an install with its queue, state, inputs and Stack in one transaction."""

from collections.abc import Mapping

from exclave.appconfig.model.kinds.metadata import Metadata
from exclave.appconfig.templates import ROOT, Fault
from exclave.base.errors import Conflict, InvalidInput
from exclave.control.access import require
from exclave.control.apps.apps import find_app
from exclave.control.attest import pins
from exclave.control.audit import record
from exclave.control.definitions import find_definition
from exclave.control.deps import Deps
from exclave.control.four_eyes import require_approve_all
from exclave.control.install_state.state import first_state
from exclave.control.installs import input_validation
from exclave.control.installs.input_versions import list_declared, merge_values, store_values
from exclave.control.installs.start_workflow import WorkflowKind, begin_install_workflow
from exclave.control.job_specs.rendering import Renderings
from exclave.control.limits.quotas import check_count
from exclave.control.stack_versions.versions import refresh_version
from exclave.domain.apps import App
from exclave.domain.clouds import check_place, write_cloud_account
from exclave.domain.configs import Config
from exclave.domain.four_eyes import Author
from exclave.domain.identity import InstallId, OrgId, QueueId, QueueKind, Right, User
from exclave.domain.installs import AppInstall, ApprovalOption, NewAppInstall
from exclave.domain.quotas import Counted
from exclave.domain.stacks import Cloud
from exclave.stacks.registry import find_cloud_stack, get_stack
from exclave.storage import (
    app_installs,
    apps,
    configs,
    install_identities,
    installs,
    queues,
    stacks,
)
from exclave.storage.engine.database import Tx
from exclave.wire.installs import NewInstall

_MOST_LABELS = 32
"""Of an app, as of an install; one that was synced by an older server may have more."""


def add_plain_install(tx: Tx, deps: Deps, user: User, request: NewInstall) -> InstallId:
    """Create an install without an app: a queue for workflows that people write."""
    require(user, Right.OPERATE)
    place = (request.region, request.account, request.tenant)
    if request.inputs or request.approve_all or request.here or any(place):
        raise InvalidInput(
            "an install without an app has no inputs, plans or Stack", hint="Name its app."
        )
    return _add_install(tx, deps, user, request.name, request.labels)


def add_app_install(
    tx: Tx, deps: Deps, user: User, request: NewInstall, app_name: str, texts: Renderings
) -> tuple[InstallId, str | None]:
    """Create an install of an app and start to provision it; return both ids."""
    app = find_app(tx, user, app_name, Right.OPERATE)
    if request.approve_all:
        require_approve_all(tx, user, None, app=app.id, noun="app")
    config = find_current(tx, user.org, app)
    cloud = find_cloud(app.name, config)
    place = check_place(cloud, request.region, request.account, request.tenant)
    if request.here:
        _refuse_elsewhere(deps, cloud)
    declared = list_declared(tx, user.org, config.id)
    values = merge_values(declared, {}, request.inputs)
    made = texts.make_once(f"install {request.name}", deps.ids.new_install)
    install = _add_install(tx, deps, user, request.name, {}, made)
    app_installs.add_app_install(
        tx,
        user.org,
        install,
        NewAppInstall(
            app_id=app.id,
            config_id=config.id,
            config_by=user.person,
            target=cloud,
            place=place,
            approval=ApprovalOption.APPROVE_ALL if request.approve_all else ApprovalOption.PROMPT,
            here=request.here,
        ),
    )
    if request.confirm_account:
        _require_confirmation(tx, user.org, install, cloud)
    store_values(tx, deps, user.org, install, declared, values, user.name)
    hidden = input_validation.hide_values(declared, values)
    account = write_cloud_account(cloud, place)
    defaults = _read_labels(tx, texts, user.org, config, app, install, request.name, account)
    labels = {**defaults, **request.labels}
    installs.set_labels(tx, user.org, install, labels)
    components = [component["name"] for component in config.outline["components"]]
    first_state(tx, user.org, install, components, hidden)
    stacks.add_version(tx, user.org, deps.ids.new("stk"), install, 1, config.id)
    refresh_version(tx, deps, user.org, install, texts)
    if not request.provision:
        return install, None
    kind = WorkflowKind.PROVISION
    return install, begin_install_workflow(tx, deps, user.org, Author.of(user), install, kind)


def find_app_ids(tx: Tx, org: OrgId, name: str) -> list[str]:
    """Find an app by its id or its name; nothing if there is none."""
    row = apps.find_app(tx, org, name) or apps.find_app_named(tx, org, name)
    return [] if row is None else [str(row.id)]


def find_current(tx: Tx, org: OrgId, app: App) -> Config:
    """Find the config that new installs of an app get."""
    config = configs.find_config(tx, org, app.config_id) if app.config_id else None
    if config is None:
        raise Conflict(
            f"the app `{app.name}` was never synced",
            hint="Upload its directory first: exclave apps sync DIR",
        )
    find_cloud(app.name, config)
    return config


def find_cloud(app: str, config: Config) -> Cloud:
    """Return the cloud that a config is for; raise `Conflict` if there is no Stack for it."""
    name = config.outline["cloud"]
    return (find_cloud_stack(name) or get_stack(name, owner=f"the app `{app}`")).cloud


def require_same_cloud(install: AppInstall, config: Config) -> None:
    """Raise `Conflict` if a config is for another cloud than the one that an install is on."""
    cloud = find_cloud(install.app_name, config)
    if cloud is not install.target:
        raise Conflict(
            f"the config is for `{cloud}`, and the install is on `{install.target}`",
            hint="An install stays on its cloud: create another install for the new one.",
        )


def _add_install(
    tx: Tx, deps: Deps, user: User, name: str, labels: Mapping[str, str], made: str = ""
) -> InstallId:
    if installs.find_install_named(tx, user.org, name) is not None:
        raise Conflict(f"there is an install named `{name}` already", hint="Choose another name.")
    check_count(tx, deps, user.org, Counted.INSTALLS)
    install = InstallId(made or deps.ids.new_install())
    queues.add_queue(tx, user.org, QueueId(install), QueueKind.INSTALL)
    installs.add_install(tx, user.org, install, name, labels)
    record(tx, deps, user.org, user.name, "install_created", install, name=name)
    return install


def _require_confirmation(tx: Tx, org: OrgId, install: InstallId, cloud: Cloud) -> None:
    """Let no runner enrol from an account that nobody has named or confirmed."""
    row = installs.find_install(tx, org, install)
    if cloud is Cloud.LOCAL or not isinstance(row, AppInstall):
        raise InvalidInput(
            f"an install on `{cloud}` has no account to confirm",
            hint="Leave --confirm-account out for this app.",
        )
    pins.hold_identity(tx, org, row)
    install_identities.require_confirmation(tx, org, install, on=True)


def _refuse_elsewhere(deps: Deps, cloud: Cloud) -> None:
    """Refuse to run an install on the server's own machine unless the server and app allow it."""
    if not deps.runs_stacks:
        raise InvalidInput(
            "this server runs no Stacks: `here` is for `exclave dev`",
            hint="Leave it out, then run what `exclave installs stack NAME` prints.",
        )
    if cloud is not Cloud.LOCAL:
        raise InvalidInput(
            f"the app is for `{cloud}`, and `here` is this machine",
            hint="Leave it out, or set `runner_type` in the app's runner.toml to `local`.",
        )


def _read_labels(
    tx: Tx,
    texts: Renderings,
    org: OrgId,
    config: Config,
    app: App,
    install: str,
    name: str,
    account: Mapping[str, object],
) -> dict[str, str]:
    """Return the labels that the app puts on every install."""
    metadata = find_definition(tx, org, config.id, Metadata)
    given = {} if metadata is None else metadata.default_labels
    ids = {"id": install, "name": name}
    tree = {
        **ids,
        "install": ids,
        "org": {"id": org},
        "app": {"id": app.id, "name": app.name},
        "cloud_account": account,
    }
    labels: dict[str, str] = {}
    for key, text in list(given.items())[:_MOST_LABELS]:
        done = texts.render(tx, text, {ROOT: tree}, install)
        if isinstance(done, Fault):
            raise InvalidInput(f"the app's label `{key}`: {done.message}", hint=done.hint)
        labels[key] = done
    return labels
