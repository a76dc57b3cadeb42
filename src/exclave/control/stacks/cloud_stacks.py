"""Use cases of Stacks of clouds: the files with a link for the customer, versions, links."""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from exclave.base.digests import hash_token
from exclave.base.errors import NotFound
from exclave.control.access import hold_token
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.installs.access import get_app_install
from exclave.control.job_specs.rendering import Renderings, write_rendered
from exclave.control.stack_versions.models import build_cloud_model
from exclave.control.stack_versions.stored_models import read_model
from exclave.control.stack_versions.versions import show_state, store_version
from exclave.control.stacks.cloud_files import (
    Prepared,
    advise_customer,
    compare_versions,
    find_running_model,
    prepare_files,
    read_file,
    refuse_errors,
)
from exclave.control.stacks.published_templates import publish_template
from exclave.control.workers.render_stack import Advice
from exclave.domain.identity import InstallId, Right, User
from exclave.domain.stacks import StackVersion, StackView, StoredFile
from exclave.stacks.base import Guide, StackAddress
from exclave.stacks.findings import Finding
from exclave.stacks.model import StackModel
from exclave.storage import stack_views, stacks
from exclave.storage.engine.database import Tx
from exclave.wire import stacks as wire

VIEW = "xcv"
"""The prefix of the codes of links."""
VIEW_DAYS = 90
MOST_VIEWS = 20
"""Links of an install that work at a time; a new one revokes the oldest."""
_MOST_VERSIONS = 50


@dataclass(frozen=True, slots=True)
class _Linked:
    """A version, a link to it, and what is to be said about the app."""

    version: StackVersion
    view: StackView
    findings: tuple[Finding, ...]


async def create_cloud_stack(deps: Deps, user: User, install: InstallId) -> wire.StackCreated:
    """Return the Stack of an install in a cloud, with a new link for the customer.

    Links that were made before still work: the files hold no secret, so there is nothing to void.
    """
    code = deps.ids.token(VIEW)

    def link(tx: Tx, texts: Renderings) -> _Linked:
        app_install = get_app_install(tx, user, install, Right.OPERATE, lock=True)
        built = build_cloud_model(tx, deps, user.org, app_install, texts)
        refuse_errors(built.findings)
        store_version(tx, deps, user.org, app_install, built)
        version = stacks.find_newest(tx, user.org, install)
        if version is None:
            raise NotFound("the install has no Stack")
        hold_token(tx, user)
        return _Linked(version, _add_view(tx, deps, user, install, code), built.findings)

    linked = await write_rendered(deps, user.org, link, key=install)
    ready = await prepare_files(deps, user.org, linked.version)
    before = await find_running_model(deps, user.org, install)
    template_url = await publish_template(deps, ready)
    address = StackAddress(deps.runner_url, f"{code}/{linked.version.version}", template_url)
    advice = await advise_customer(deps, user.org, ready, address, before)
    files = [await _show_file(deps, file, address) for file in ready.files]
    return _show_created(linked, ready, files, advice, f"{deps.runner_url}/v1/stacks/{code}/")


async def list_links(deps: Deps, user: User, install: InstallId) -> wire.StackLinks:
    """List the links of an install that work; their codes are not stored."""

    def find(tx: Tx) -> wire.StackLinks:
        get_app_install(tx, user, install, Right.READ)
        views = stack_views.list_open_views(tx, user.org, install)
        return wire.StackLinks(
            items=[
                wire.StackLinkReply(
                    id=view.id,
                    created_by=view.created_by,
                    created_at=view.created_at,
                    expires_at=view.expires_at,
                )
                for view in views
            ]
        )

    return await deps.db.read(find)


async def revoke_link(deps: Deps, user: User, install: InstallId, view: str) -> None:
    """Revoke a link; from then on its code is as unknown as any other."""

    def revoke(tx: Tx) -> None:
        get_app_install(tx, user, install, Right.OPERATE)
        if not stack_views.revoke_view(tx, user.org, install, view):
            raise NotFound("there is no such link, or it works no more")
        record(tx, deps, user.org, user.name, "stack_link_revoked", install, link=view)

    await deps.db.write(revoke, key=install)


async def list_versions(deps: Deps, user: User, install: InstallId) -> wire.StackVersions:
    """List the last versions of an install's Stack, newest first."""

    def find(tx: Tx) -> wire.StackVersions:
        get_app_install(tx, user, install, Right.READ)
        versions = stacks.list_versions(tx, user.org, install, _MOST_VERSIONS)
        newest = versions[0] if versions else None
        return wire.StackVersions(
            items=[show_version(version, newest, tx.now) for version in versions]
        )

    return await deps.db.read(find)


async def compare_stack(
    deps: Deps, user: User, install: InstallId, before: int | None, after: int | None
) -> wire.StackDiff:
    """Return what changes between two versions: by default what runs and the newest one."""

    def find(tx: Tx) -> tuple[tuple[int, StackModel], tuple[int, StackModel]]:
        get_app_install(tx, user, install, Right.READ)
        old = (
            stacks.find_run(tx, user.org, install)
            if before is None
            else stacks.find_version(tx, user.org, install, before)
        )
        new = (
            stacks.find_newest(tx, user.org, install)
            if after is None
            else stacks.find_version(tx, user.org, install, after)
        )
        return _read_model(tx, user, old, before), _read_model(tx, user, new, after)

    (old, old_model), (new, new_model) = await deps.db.read(find)
    changes = await compare_versions(deps, user.org, old_model, new_model)
    return wire.StackDiff(
        before=old, after=new, changes=[wire.StackChange(**asdict(change)) for change in changes]
    )


def _read_model(
    tx: Tx, user: User, version: StackVersion | None, number: int | None
) -> tuple[int, StackModel]:
    stored = None if version is None else stacks.find_model(tx, user.org, version.id)
    if version is None or stored is None:
        raise NotFound(
            "the customer runs no version yet"
            if number is None
            else f"there is no version {number}",
            hint="`exclave installs stack-versions` lists them; name two to compare.",
        )
    return version.version, read_model(stored)


def show_version(
    version: StackVersion, newest: StackVersion | None, now: datetime
) -> wire.StackVersionReply:
    """Show a version without its outputs."""
    return wire.StackVersionReply(
        id=version.id,
        version=version.version,
        state=show_state(version, newest, now),
        config_id=version.config_id,
        digest=version.digest or "",
        created_at=version.created_at,
        applied_at=version.applied_at,
        beacon=None if version.beacon is None else wire.BeaconReply.model_validate(version.beacon),
    )


def show_steps(guide: Guide) -> list[wire.StackStep]:
    """Show what the customer does, step by step."""
    return [
        wire.StackStep(
            title=step.title,
            text=step.text,
            commands=list(step.commands),
            links=[wire.StackLink(title=link.title, url=link.url) for link in step.links],
        )
        for step in guide.steps
    ]


def _add_view(tx: Tx, deps: Deps, user: User, install: InstallId, code: str) -> StackView:
    """Store a link; the oldest ones end if there are too many."""
    view = StackView(
        org=user.org,
        id=deps.ids.new("stl"),
        install_id=install,
        created_by=user.name,
        created_at=tx.now,
        expires_at=tx.now + timedelta(days=VIEW_DAYS),
    )
    for old in stack_views.list_open_views(tx, user.org, install)[: -(MOST_VIEWS - 1)]:
        stack_views.revoke_view(tx, user.org, install, old.id)
    stack_views.add_view(tx, view, hash_token(code))
    record(tx, deps, user.org, user.name, "stack_link_made", install, link=view.id)
    return view


async def _show_file(deps: Deps, file: StoredFile, address: StackAddress) -> wire.StackFile:
    is_text = file.media_type != "application/zip"
    return wire.StackFile(
        name=file.name,
        media_type=file.media_type,
        size=file.size,
        sha256=file.sha256,
        url=address.build_url(file.name),
        content=(await read_file(deps, file)).decode() if is_text else "",
    )


def _show_created(
    linked: _Linked,
    ready: Prepared,
    files: list[wire.StackFile],
    advice: Advice,
    page: str,
) -> wire.StackCreated:
    guide = advice.guide
    steps = show_steps(guide)
    return wire.StackCreated(
        id=linked.version.id,
        version=linked.version.version,
        cloud=ready.model.cloud,
        expires_at=linked.view.expires_at,
        files=files,
        parameters=[wire.StackParameter(**asdict(parameter)) for parameter in advice.parameters],
        instructions=wire.StackInstructions(
            summary=guide.summary,
            commands=list(steps[0].commands) if steps else [],
            links=steps[0].links if steps else [],
            warning=guide.warning,
            steps=steps,
        ),
        page=page,
        link_id=linked.view.id,
        digest=linked.version.digest or "",
        findings=[_show_finding(finding) for finding in linked.findings],
    )


def _show_finding(finding: Finding) -> str:
    place = " ".join(filter(None, (finding.section, finding.name)))
    return f"{finding.severity}: {place + ': ' if place else ''}{finding.message}"
