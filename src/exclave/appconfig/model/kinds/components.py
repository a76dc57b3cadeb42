"""What all components have in common, and the controls of those that are deployed with a plan."""

from collections.abc import Mapping
from typing import Any, ClassVar

from exclave.appconfig.model.fields import (
    NEW,
    REQUIRED,
    Dead,
    Table,
    flag,
    number,
    table,
    tables,
    text,
    text_map,
    texts,
)
from exclave.appconfig.model.kinds.shared import (
    BUILD_TIMEOUT,
    DEPLOY_TIMEOUT,
    DEPRECATED_ARRAYS,
    RoleRules,
)

_MISPLACED = Dead("This type of component is deployed without a plan; the key has no effect.")


def limit_build(default: str) -> Any:
    """Describe how long a build may take."""
    return text(
        "How long a build may take; at most 1h.",
        '"10m"',
        default=default,
        since=NEW,
        templated=True,
        format="duration",
    )


def limit_deploy(default: str) -> Any:
    """Describe how long a deploy may take."""
    return text(
        "How long a deploy may take; at most 1h.",
        '"20m"',
        default=default,
        since=NEW,
        templated=True,
        format="duration",
    )


class Probe(Table):
    """One check of a running component."""

    type: str = text("How it checks.", choices=("http", "tcp", "exec"), need=REQUIRED, since=NEW)
    name: str = text("Unique.", '"api"', need=REQUIRED, since=NEW)
    url: str = text(
        "What http and tcp probes call.",
        '"http://api.app.svc:8080/healthz"',
        since=NEW,
        templated=True,
    )
    command: tuple[str, ...] = texts(
        "What an exec probe runs, without a shell.",
        '["pg_isready", "-h", "db"]',
        since=NEW,
        templated=True,
    )


BUILT_IN_CHECKS = ("readiness", "restarts")
"""Checks of every component in a cluster, which need no probe."""


class Health(Table):
    """How the platform finds out that a deployed component works."""

    enabled: bool = flag("Whether it looks at all.", default=True, since=NEW)
    stabilization_window: str = text(
        "How long it must stay healthy after its rollout; at most 1h.",
        '"5m"',
        default="3m",
        since=NEW,
        templated=True,
        format="duration",
    )
    block_deploy: bool = flag("An unhealthy component fails its deploy.", since=NEW)
    required_checks: tuple[str, ...] = texts(
        "Checks that decide: names of probes, `readiness`, `restarts`; absent: all.",
        '["readiness", "api"]',
        since=NEW,
    )
    probes: tuple[Probe, ...] = tables(Probe, "Checks of your own.", since=NEW)


class Component(RoleRules):
    """A part of the app that is built and deployed by itself."""

    DEAD: ClassVar[Mapping[str, Dead]] = DEPRECATED_ARRAYS
    OPERATIONS: ClassVar[tuple[str, ...]] = ("deploy", "teardown")
    TYPE: ClassVar[str] = ""
    OVERRIDE: ClassVar[str] = ""
    """The key under which an install adds to the values of such a component, if it can."""
    DEPRECATED: ClassVar[str] = ""
    """What to use instead of this type."""
    UNSUPPORTED: ClassVar[str] = ""
    """Why components of this type are not deployed, if they are not."""

    type: str = text("Which kind of component this is.", '"helm_chart"', need=REQUIRED)
    name: str = text(
        "Unique; read in templates as `.nuon.components.<name>`.",
        '"api"',
        need=REQUIRED,
        format="name",
    )
    var_name: str = text("Kept, without effect: templates use the name.", '"api"')
    dependencies: tuple[str, ...] = texts(
        "Components that are deployed first; those whose outputs are used are found by themselves.",
        '["database"]',
    )
    labels: Mapping[str, str] = text_map("Labels of your own.", '{ tier = "web" }', since=NEW)
    toggleable: bool = flag("An install may switch it off.", since=NEW)
    default_enabled: bool = flag("Whether a toggleable component starts switched on.", since=NEW)
    kubernetes_context: str = text(
        "The cluster it goes to; absent: that of the sandbox.", '"edge"', since=NEW
    )
    source: str = text("A TOML file whose keys are merged over these.", '"shared/api.toml"')
    build_timeout: str = limit_build(BUILD_TIMEOUT)
    deploy_timeout: str = limit_deploy(DEPLOY_TIMEOUT)


class PlannedComponent(Component):
    """A component whose deploy is a plan, an approval and an apply."""

    drift_schedule: str = text(
        "When to look for drift: cron with 5 fields. Absent: never.",
        '"0 6 * * *"',
        templated=True,
        format="cron",
    )
    max_auto_retries: int = number("How often a failed deploy is repeated.", "2", since=NEW)
    skip_noops: bool = flag("Leave out the apply of a plan without changes.", since=NEW)
    auto_approve_on_policies_passing: bool = flag(
        "Approve a plan when all policies pass.", since=NEW
    )


class Ignore(Table):
    """A change that drift scans do not report."""

    kind: str = text("The kind of objects; absent: all.", '"Deployment"', since=NEW)
    name: str = text("A glob of their names; absent: all.", '"web-*"', since=NEW)
    path: str = text(
        "The field; `[*]` stands for every element of a list.",
        "'spec.template.metadata.annotations[\"example.com/restarted\"]'",
        need=REQUIRED,
        since=NEW,
    )


class Teardown(Table):
    """What a teardown removes beside what was deployed."""

    volumes: bool = flag("Claims that StatefulSets made, with their data.", since=NEW)
    namespace: bool = flag("The namespace, if it was made here and is empty.", since=NEW)


class WatchedComponent(PlannedComponent):
    """A planned component in a cluster, with health checks."""

    ignore: tuple[Ignore, ...] = tables(Ignore, "Changes that do not count as drift.", since=NEW)
    teardown: Teardown | None = table(
        Teardown, "What else a teardown removes; absent: nothing.", since=NEW
    )
    require_no_downtime: bool = flag(
        "A deploy fails if a Service of it was without a ready endpoint meanwhile.", since=NEW
    )
    rollback_on_failure: bool = flag(
        "A deploy whose rollout fails goes back to what was deployed before, and still fails.",
        since=NEW,
    )
    health: Health | None = table(Health, "How the platform finds out that it works.", since=NEW)


UNPLANNED: Mapping[str, Dead] = {
    **DEPRECATED_ARRAYS,
    "max_auto_retries": _MISPLACED,
    "skip_noops": _MISPLACED,
    "auto_approve_on_policies_passing": _MISPLACED,
    "drift_schedule": _MISPLACED,
    "health": _MISPLACED,
}
