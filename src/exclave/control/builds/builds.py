"""Use cases of builds: start those of a config version, repeat one, list and show them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import TypeAdapter, ValidationError

from exclave.base.errors import Conflict, InvalidInput, NotFound
from exclave.control.access import require
from exclave.control.audit import record
from exclave.control.builds.targets import find_target, list_targets
from exclave.control.deps import Deps
from exclave.control.pagination import clamp, make_page
from exclave.control.progress.advance import advance
from exclave.control.progress.workflow_events import WorkflowEvent
from exclave.domain import builds as domain
from exclave.domain.builds import Build, ListedBuild, may_be_reused
from exclave.domain.configs import Config
from exclave.domain.four_eyes import Author
from exclave.domain.identity import OrgId, Right, ScopeKind, User, allows, list_granted
from exclave.domain.workflows import NewStep, NewWorkflow, StepKind, WorkflowId
from exclave.jobspec.builds import BuildTarget, make_build_job
from exclave.storage import apps, builds, configs, jobs, queues, registry_blobs, steps, workflows
from exclave.storage.engine.database import Tx
from exclave.wire.builds import BuildReply, BuildState, NewBuild
from exclave.wire.model import Page
from exclave.wire.plans import PolicyFinding
from exclave.wire.specs import BuildSource, GitSource

_SOURCE: TypeAdapter[BuildSource] = TypeAdapter(BuildSource)
_FINDINGS: TypeAdapter[list[PolicyFinding]] = TypeAdapter(list[PolicyFinding])


def ensure_builds(tx: Tx, deps: Deps, org: OrgId, by: str, config_id: str) -> list[str]:
    """Pin a build for every part of a version; return the builds that had to be begun.

    What was built before, or is being built, is used again; what has failed is tried again.
    Calling this twice changes nothing.
    """
    registry_blobs.hold_off_collector(tx, org)
    config = _find_config(tx, org, config_id)
    wanted = list_targets(tx, org, config)
    pinned = {row.pin: row for row in builds.list_pinned(tx, org, config_id)}
    missing = [target for target in wanted if not _is_good(pinned.get(target.part))]
    usable = dict(builds.find_usable(tx, org, config.app_id, [target.key for target in missing]))
    fresh: dict[str, tuple[str, BuildTarget]] = {}
    for target in missing:
        usable_build = usable.get(target.key)
        if usable_build is None and target.key not in fresh:
            fresh[target.key] = (deps.ids.new("bui"), target)
    _begin(tx, deps, org, by, config, list(fresh.values()))
    for target in missing:
        build = usable[target.key].id if target.key in usable else fresh[target.key][0]
        builds.pin(tx, org, config_id, target.part, build)
    return [build for build, _ in fresh.values()]


async def create_build(deps: Deps, user: User, body: NewBuild) -> BuildReply:
    """Build a part of an app's current version again; a git ref is resolved anew."""

    def create(tx: Tx) -> BuildReply:
        app = apps.find_app_named(tx, user.org, body.app) or apps.find_app(tx, user.org, body.app)
        if app is None:
            raise NotFound("there is no such app")
        require(user, Right.OPERATE, app=app.id, noun="app")
        registry_blobs.hold_off_collector(tx, user.org)
        locked = apps.lock_app(tx, user.org, app.id)
        if locked is None or locked.config_id is None:
            raise Conflict(f"the app `{app.name}` has no version yet", hint="Sync it first.")
        config = _find_config(tx, user.org, locked.config_id)
        target = _set_commit(
            find_target(list_targets(tx, user.org, config), body.part), body.commit
        )
        build = deps.ids.new("bui")
        _begin(tx, deps, user.org, user.name, config, [(build, target)])
        if not _is_good(builds.find_pinned(tx, user.org, config.id, target.part)):
            builds.pin(tx, user.org, config.id, target.part, build)
        record(tx, deps, user.org, user.name, "build_created", build, part=target.part)
        return _show(tx, user.org, build)

    return await deps.db.write(create)


async def list_builds(
    deps: Deps,
    user: User,
    *,
    cursor: str,
    limit: int,
    app: str | None,
    part: str | None,
    state: BuildState | None,
) -> Page[BuildReply]:
    """List builds, newest first."""
    wanted = clamp(limit)

    def find(tx: Tx) -> Page[BuildReply]:
        full = part if part is None or ":" in part or part == "sandbox" else f"component:{part}"
        named = None if app is None else apps.find_app_named(tx, user.org, app)
        rows = builds.list_builds(
            tx,
            user.org,
            before=cursor,
            limit=wanted + 1,
            part=full,
            state=state,
            app=app if named is None else named.id,
            only=_list_visible(user),
        )
        versions = _list_versions(tx, user.org, rows)
        return make_page(rows, wanted, lambda row: _show_row(row, versions))

    return await deps.db.read(find)


async def show_build(deps: Deps, user: User, build: str) -> BuildReply:
    """Show a build."""

    def show(tx: Tx) -> BuildReply:
        row = builds.find_build(tx, user.org, build)
        if row is None:
            raise NotFound("there is no such build")
        require(user, Right.READ, app=row.app_id, noun="build")
        reply = _show_row(row, _list_versions(tx, user.org, [row]))
        return reply.model_copy(update={"policies": _list_findings(tx, row)})

    return await deps.db.read(show)


def _begin(
    tx: Tx,
    deps: Deps,
    org: OrgId,
    by: str,
    config: Config,
    fresh: Sequence[tuple[str, BuildTarget]],
) -> None:
    """Store builds and one workflow that does them, all at once, on the org's build queue."""
    if not fresh:
        return
    app = apps.find_app(tx, org, config.app_id)
    if app is None:
        raise NotFound("there is no such app")
    deps.exhausted_quotas.begin_work(deps.quotas, org)
    workflow = WorkflowId(deps.ids.new("wfl"))
    repository = f"apps/{app.name}"
    new = [_make_build(app.id, build, target, repository, workflow, by) for build, target in fresh]
    builds.add_builds(tx, org, new)
    workflows.add_workflow(
        tx,
        NewWorkflow(
            org=org,
            id=workflow,
            queue=queues.find_build_queue(tx, org),
            name="build",
            author=Author(by),
            steps=[
                _make_step(position, build, target, repository)
                for position, (build, target) in enumerate(fresh)
            ],
            labels={"app": app.name, "config": str(config.version)},
            serial=True,  # builds end one after the other: the last finds what waits for all
        ),
    )
    advance(tx, deps, [WorkflowEvent(org, workflow)])
    for step, (build, _) in zip(steps.list_steps(tx, org, workflow), fresh, strict=True):
        builds.set_work(tx, org, build, workflow, step.job_id)


def _make_build(
    app: str, build: str, target: BuildTarget, repository: str, workflow: WorkflowId, by: str
) -> domain.NewBuild:
    return domain.NewBuild(
        id=build,
        app_id=app,
        part=target.part,
        key=target.key,
        source=target.source.model_dump(mode="json"),
        repository=repository,
        workflow_id=workflow,
        created_by=by,
    )


def _make_step(position: int, build: str, target: BuildTarget, repository: str) -> NewStep:
    job = make_build_job(target, build_id=build, repository=repository)
    return NewStep(
        name=f"{re.sub('[^a-z0-9_]+', '-', target.part)[:50]}-{position}",
        kind=StepKind.JOB,
        job=job.model_dump(mode="json"),
    )


def _set_commit(target: BuildTarget, commit: str | None) -> BuildTarget:
    """Return the target at a commit; refuse one whose source has no commits."""
    if commit is None:
        return target
    if not isinstance(target.source, GitSource):
        raise InvalidInput(
            f"`{target.part}` does not come from a git repository, so it has no commits",
            hint="Leave the commit out.",
        )
    return replace(target, source=target.source.model_copy(update={"commit": commit}))


def _is_good(build: Build | None) -> bool:
    return build is not None and may_be_reused(build.state)


def _find_config(tx: Tx, org: OrgId, config_id: str) -> Config:
    config = configs.find_config(tx, org, config_id)
    if config is None:
        raise NotFound("there is no such config")
    return config


def _list_visible(user: User) -> Sequence[str] | None:
    """List the apps whose builds a user may see; None means all."""
    if allows(user, Right.READ):
        return None
    return list_granted(user, ScopeKind.APP)


def _show(tx: Tx, org: OrgId, build: str) -> BuildReply:
    row = builds.find_build(tx, org, build)
    if row is None:
        raise NotFound("there is no such build")
    return _show_row(row, _list_versions(tx, org, [row]))


def _list_findings(tx: Tx, build: Build) -> list[PolicyFinding]:
    """Return what policies say about a built image, as its runner reported it."""
    job = None if build.job_id is None else jobs.find_job(tx, build.org_id, build.job_id)
    if job is None:
        return []
    try:
        return _FINDINGS.validate_python(job.outputs.get("policies", []))
    except ValidationError:
        return []


def _list_versions(tx: Tx, org: OrgId, rows: Sequence[Build]) -> Mapping[str, list[int]]:
    """List the config versions that pin each of these builds."""
    versions: dict[str, list[int]] = {}
    for config in builds.list_configs_of(tx, org, [row.id for row in rows]):
        versions.setdefault(config.build_id, []).append(config.version)
    return versions


def _show_row(row: ListedBuild, versions: Mapping[str, list[int]]) -> BuildReply:
    return BuildReply(
        id=row.id,
        app_id=row.app_id,
        app=row.app,
        part=row.part,
        state=row.state,
        source=_SOURCE.validate_python(row.source),
        repository=row.repository,
        digest=row.digest,
        commit=row.commit,
        size=row.size,
        provenance=row.provenance,
        error=row.error,
        workflow_id=row.workflow_id,
        job_id=row.job_id,
        configs=versions.get(row.id, []),
        created_at=row.created_at,
        created_by=row.created_by,
        finished_at=row.finished_at,
    )
