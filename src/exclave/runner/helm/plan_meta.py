"""What a plan of a release has beside its objects: the frozen chart, values, hooks, the release."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from exclave.base.json_values import (
    Json,
    JsonObject,
    list_or_empty,
    object_or_empty,
    parse_object,
    require_object,
    text_or_empty,
)
from exclave.runner.helm.records import Driver
from exclave.runner.helm.recovery import Recovery
from exclave.runner.kube.api.objects import identify
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.changes.plan_file import PlanFile

CHART: Final = "chart.tgz"
VALUES: Final = "values.json"
_META: Final = "release.json"
_CRDS: Final = "crds.json"


@dataclass(frozen=True, slots=True)
class PlannedHook:
    """A hook as the plan shows it."""

    address: str
    type: str
    name: str
    events: Sequence[str]
    pulls_in: str = ""
    """The namespace in which its pods pull with the login of the registry; empty if they do not."""


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """What an apply needs to know about the release."""

    release: str
    driver: Driver
    revision: int
    """The last revision when the plan was made; another one makes the plan stale."""
    chart: bytes
    values: bytes
    """With placeholders instead of secrets: what `helm get values` will show."""
    chart_name: str = ""
    chart_version: str = ""
    app_version: str = ""
    hooks: Sequence[PlannedHook] = ()
    crds: Sequence[WantedObject] = ()
    """Definitions of the chart that the apply makes or changes."""
    recovery: Recovery | None = None
    take_ownership: bool = False

    @property
    def waits_for_pods(self) -> bool:
        """Whether Helm itself has to wait: hooks that follow a deploy expect ready pods."""
        after = {"post-install", "post-upgrade"}
        return any(after & set(hook.events) for hook in self.hooks)


def write_release_plan(plan: ReleasePlan) -> Mapping[str, bytes]:
    """Return the files of a release for a plan."""
    recovery = plan.recovery
    meta: dict[str, Json] = {
        "release": plan.release,
        "driver": plan.driver,
        "revision": plan.revision,
        "chart": plan.chart_name,
        "version": plan.chart_version,
        "app_version": plan.app_version,
        "take_ownership": plan.take_ownership,
        "hooks": [
            {
                "address": hook.address,
                "type": hook.type,
                "name": hook.name,
                "events": [*hook.events],
                "pulls_in": hook.pulls_in,
            }
            for hook in plan.hooks
        ],
        "recovery": None
        if recovery is None
        else {"revision": recovery.revision, "status": recovery.status, "why": recovery.why},
    }
    crds: list[Json] = [wanted.value for wanted in plan.crds]
    return {CHART: plan.chart, VALUES: plan.values, _META: _dump(meta), _CRDS: _dump(crds)}


def read_release_plan(plan: PlanFile) -> ReleasePlan:
    """Return the release of a plan; `ValueError` if the plan is of something else."""
    files = plan.extra or {}
    if not {CHART, VALUES, _META} <= files.keys():
        message = "the plan is not that of a release"
        raise ValueError(message)
    meta = parse_object(files[_META], "the release of the plan")
    revision = meta.get("revision")
    return ReleasePlan(
        release=text_or_empty(meta.get("release")),
        driver="configmap" if meta.get("driver") == "configmap" else "secret",
        revision=revision if isinstance(revision, int) else 0,
        chart=files[CHART],
        values=files[VALUES],
        chart_name=text_or_empty(meta.get("chart")),
        chart_version=text_or_empty(meta.get("version")),
        app_version=text_or_empty(meta.get("app_version")),
        hooks=[_read_hook(object_or_empty(hook)) for hook in list_or_empty(meta.get("hooks"))],
        crds=_read_crds(files.get(_CRDS, b"[]")),
        recovery=_read_recovery(meta.get("recovery")),
        take_ownership=meta.get("take_ownership") is True,
    )


def _read_hook(hook: JsonObject) -> PlannedHook:
    return PlannedHook(
        text_or_empty(hook.get("address")),
        text_or_empty(hook.get("type")),
        text_or_empty(hook.get("name")),
        [text_or_empty(event) for event in list_or_empty(hook.get("events"))],
        text_or_empty(hook.get("pulls_in")),
    )


def _read_crds(data: bytes) -> list[WantedObject]:
    values = [require_object(value, "a definition of the plan") for value in json.loads(data)]
    return [WantedObject(identify(value), value) for value in values]


def _read_recovery(value: Json) -> Recovery | None:
    if value is None:
        return None
    planned = object_or_empty(value)
    revision = planned.get("revision")
    return Recovery(
        revision if isinstance(revision, int) else 0,
        text_or_empty(planned.get("status")),
        text_or_empty(planned.get("why")),
    )


def _dump(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode()
