"""What a step of an install's workflow is meant to do, and how that is stored.

A step is stored with its intent long before it starts; its job is built from the intent when it
starts. The JSON is a contract with workflows that run during an upgrade: keys may be added, with a
default for the steps that lack them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from exclave.base.json_values import Json, JsonObject, require_object, require_text
from exclave.domain.installs import component_of
from exclave.domain.workflows import WorkflowKind


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan that was applied before, whose content a rollback plans again."""

    execution: str
    """The one that uploaded it."""
    digest: str
    config: str
    """The config version that it was made of."""


@dataclass(frozen=True, slots=True)
class PlanPart:
    """Plan the sandbox or a component; a gate and an apply follow."""

    part: str
    destroy: bool = False
    auto: bool = False
    """Approve the plan without a person if all policies pass."""
    delay_s: float | None = None
    """How long the runner waits first; set when the plan is made again."""
    rollback_to: StoredPlan | None = None
    """Plan what was deployed then, instead of what the app says now."""
    take_over: bool = False
    """Whether to continue although another Helm process seems to work on the release."""
    adopt: bool = False
    """Whether to continue although the part was deployed to another cluster."""

    @property
    def component(self) -> str:
        """The component's name; empty for the sandbox."""
        return component_of(self.part)


@dataclass(frozen=True, slots=True)
class ScanPart:
    """Plan a part to show what would change; nothing follows."""

    part: str

    @property
    def component(self) -> str:
        """The component's name; empty for the sandbox."""
        return component_of(self.part)

    @property
    def destroy(self) -> bool:
        """Scans only show what a deploy would change."""
        return False


@dataclass(frozen=True, slots=True)
class ApplyPart:
    """Apply exactly the plan that the step named `plan` made."""

    part: str
    plan: str
    destroy: bool = False

    @property
    def component(self) -> str:
        """The component's name; empty for the sandbox."""
        return component_of(self.part)


@dataclass(frozen=True, slots=True)
class SyncPart:
    """Copy the image of a component into the install's registry, or remove it from there."""

    part: str
    destroy: bool = False

    @property
    def component(self) -> str:
        """The component's name."""
        return component_of(self.part)


@dataclass(frozen=True, slots=True)
class CheckPart:
    """Check the health of a component that another workflow deployed."""

    part: str
    deployed_by: str
    """That workflow; what is found counts only as long as nothing newer is deployed."""

    @property
    def component(self) -> str:
        """The component's name."""
        return component_of(self.part)

    @property
    def destroy(self) -> bool:
        """Return False: a look changes nothing."""
        return False


@dataclass(frozen=True, slots=True)
class RunAction:
    """Run an action, or a script that a runbook's step contains (then `action` is empty)."""

    action: str
    trigger: str
    component: str = ""
    """The component whose deploy or teardown triggered it."""
    runbook: str = ""
    runbook_step: str = ""

    @property
    def name(self) -> str:
        """The name under which the run is shown."""
        return self.action or f"{self.runbook}.{self.runbook_step}"


@dataclass(frozen=True, slots=True)
class SyncSecrets:
    """Find out which secrets the customer has provided."""

    adopt: bool = False
    """Whether copies may be in another cluster, which is left as it is."""


@dataclass(frozen=True, slots=True)
class RemoveSecrets:
    """Remove the secrets that were copied into namespaces of the cluster."""


@dataclass(frozen=True, slots=True)
class AwaitRunner:
    """Wait until a runner takes an empty job, which proves that one is connected."""


@dataclass(frozen=True, slots=True)
class AwaitStack:
    """Wait until the customer's Stack reports."""


@dataclass(frozen=True, slots=True)
class AwaitBuilds:
    """Wait until the builds of the config are over."""


@dataclass(frozen=True, slots=True)
class AwaitEvent:
    """Wait until a person reports an event; a step of a runbook."""


PartIntent = PlanPart | ScanPart | ApplyPart
Intent = (
    PartIntent
    | SyncPart
    | CheckPart
    | RunAction
    | SyncSecrets
    | RemoveSecrets
    | AwaitRunner
    | AwaitStack
    | AwaitBuilds
    | AwaitEvent
)


@dataclass(frozen=True, slots=True)
class WorkflowValues:
    """What a workflow was started with; stored with the intent of every step."""

    config: str
    """The id of the config version that the workflow was planned with."""
    kind: str
    env: Mapping[str, str] = field(default_factory=dict)
    """What a person gave for a run of an action."""
    role: str = ""
    runbook_inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_drift_scan(self) -> bool:
        """Whether the result of a scan says if the install has drifted."""
        return self.kind == WorkflowKind.DRIFT_SCAN

    def to_json(self) -> dict[str, Json]:
        """Return the values as they are stored; empty ones are left out."""
        values: dict[str, Json] = {
            "env": dict(self.env),
            "role": self.role,
            "runbook_inputs": dict(self.runbook_inputs),
        }
        present = {name: value for name, value in values.items() if value}
        return {"config": self.config, "kind": self.kind, **present}


@dataclass(frozen=True, slots=True)
class StepIntent:
    """The intent of a stored step with the values of its workflow."""

    intent: Intent
    values: WorkflowValues

    def to_json(self) -> dict[str, Json]:
        """Return what is stored in the step's spec as `intent`."""
        return {**self.values.to_json(), **write_intent(self.intent)}


def write_intent(intent: Intent) -> dict[str, Json]:
    """Return an intent as JSON, without the values of its workflow."""
    match intent:
        case PlanPart():
            return {"do": "plan", "auto": intent.auto, **_write_part(intent), **_write_more(intent)}
        case ScanPart(part):
            component = intent.component
            fields: JsonObject = {
                "part": part,
                "component": component,
                "destroy": False,
                "scan": True,
            }
            return {"do": "plan", **fields}
        case ApplyPart():
            return {"do": "apply", "plan": intent.plan, **_write_part(intent)}
        case SyncPart():
            return {"do": "sync", **_write_part(intent)}
        case CheckPart(part, deployed_by):
            return {"do": "check", "part": part, "deployed_by": deployed_by}
        case RunAction():
            return _write_action(intent)
        case SyncSecrets(adopt=True):
            return {"do": "secrets", "adopt": True}
        case (
            SyncSecrets()
            | RemoveSecrets()
            | AwaitRunner()
            | AwaitStack()
            | AwaitBuilds()
            | AwaitEvent()
        ):
            return {"do": _NAMES[type(intent)]}
        case _:
            assert_never(intent)


def read_intent(spec: JsonObject) -> StepIntent | None:
    """Return the intent in a step's spec.

    None if the step has none (a gate, a job that a person wrote) or a newer server stored it.
    """
    stored = spec.get("intent")
    if not stored:
        return None
    fields = require_object(stored, "the intent of a step")
    intent = _read_intent(fields)
    return None if intent is None else StepIntent(intent, _read_values(fields))


def with_delay(spec: JsonObject, delay_s: float) -> dict[str, Json]:
    """Return the spec of a step that plans, changed so that its next job waits first."""
    stored = read_intent(spec)
    if stored is None or not isinstance(stored.intent, PlanPart):
        message = "only a plan is made again"
        raise ValueError(message)
    again = replace(stored, intent=replace(stored.intent, delay_s=delay_s))
    return {**spec, "intent": again.to_json()}


def _read_intent(stored: JsonObject) -> Intent | None:
    match stored.get("do"):
        case "plan" if stored.get("scan"):
            return ScanPart(_read_text(stored, "part"))
        case "plan":
            return PlanPart(
                _read_text(stored, "part"),
                destroy=_read_flag(stored, "destroy"),
                auto=bool(stored.get("auto")),
                delay_s=_read_delay(stored),
                rollback_to=_read_stored_plan(stored),
                take_over=bool(stored.get("take_over")),
                adopt=bool(stored.get("adopt")),
            )
        case "apply":
            part, plan = _read_text(stored, "part"), _read_text(stored, "plan")
            return ApplyPart(part, plan, destroy=_read_flag(stored, "destroy"))
        case "sync":
            return SyncPart(_read_text(stored, "part"), destroy=_read_flag(stored, "destroy"))
        case "check":
            return CheckPart(_read_text(stored, "part"), _read_text(stored, "deployed_by"))
        case "action":
            return RunAction(
                _read_text(stored, "action"),
                _read_text(stored, "trigger"),
                _read_text(stored, "component", ""),
                _read_text(stored, "runbook", ""),
                _read_text(stored, "runbook_step", ""),
            )
        case "secrets":
            return SyncSecrets(adopt=bool(stored.get("adopt")))
        case other:
            return _WITHOUT_FIELDS.get(str(other))


_WITHOUT_FIELDS: Mapping[str, Intent] = {
    "secrets": SyncSecrets(),
    "secrets-remove": RemoveSecrets(),
    "runner": AwaitRunner(),
    "stack": AwaitStack(),
    "builds": AwaitBuilds(),
    "event": AwaitEvent(),
}
_NAMES = {type(intent): name for name, intent in _WITHOUT_FIELDS.items()}


def _read_values(stored: JsonObject) -> WorkflowValues:
    return WorkflowValues(
        _read_text(stored, "config"),
        _read_text(stored, "kind", ""),
        _read_texts(stored, "env"),
        _read_text(stored, "role", ""),
        _read_texts(stored, "runbook_inputs"),
    )


def _read_text(stored: JsonObject, key: str, default: str | None = None) -> str:
    return require_text(stored.get(key, default), _name(key))


def _read_flag(stored: JsonObject, key: str) -> bool:
    value = stored.get(key)
    if not isinstance(value, bool):
        message = f"{_name(key)} is not true or false"
        raise ValueError(message)  # noqa: TRY004 - a wrong document, like its other fields
    return value


def _read_delay(stored: JsonObject) -> float | None:
    value = stored.get("delay_s")
    if value is not None and not isinstance(value, int | float):
        message = f"{_name('delay_s')} is not a number"
        raise ValueError(message)
    return value


def _read_stored_plan(stored: JsonObject) -> StoredPlan | None:
    plan = stored.get("rollback_to")
    if plan is None:
        return None
    fields = require_object(plan, _name("rollback_to"))
    texts = (_read_text(fields, key) for key in ("execution", "digest", "config"))
    return StoredPlan(*texts)


def _read_texts(stored: JsonObject, key: str) -> dict[str, str]:
    texts = require_object(stored.get(key, {}), _name(key))
    return {name: require_text(text, _name(f"{key}.{name}")) for name, text in texts.items()}


def _name(key: str) -> str:
    return f"`{key}` of a stored intent"


def _write_more(intent: PlanPart) -> dict[str, Json]:
    """Return the fields of a plan that most plans do not have."""
    fields: dict[str, Json] = {}
    if intent.delay_s is not None:
        fields["delay_s"] = intent.delay_s
    if intent.rollback_to is not None:
        plan = intent.rollback_to
        fields["rollback_to"] = {
            "execution": plan.execution,
            "digest": plan.digest,
            "config": plan.config,
        }
    if intent.take_over:
        fields["take_over"] = True
    if intent.adopt:
        fields["adopt"] = True
    return fields


def _write_part(intent: PlanPart | ApplyPart | SyncPart) -> dict[str, Json]:
    component: JsonObject = {"component": intent.component} if intent.component else {}
    return {"part": intent.part, **component, "destroy": intent.destroy}


def _write_action(intent: RunAction) -> dict[str, Json]:
    fields = {"action": intent.action, "trigger": intent.trigger, "component": intent.component}
    if not intent.runbook:
        return {"do": "action", **fields}
    runbook = {"runbook": intent.runbook, "runbook_step": intent.runbook_step}
    return {"do": "action", **fields, **runbook}
