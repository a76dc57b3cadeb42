"""An account of a cloud in memory, a document of a Stack, and the endpoint of one job."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from exclave.base.ids import SeededRandomness
from exclave.base.json_values import JsonObject
from exclave.base.secrets import Secret
from exclave.runner.audit import Audit
from exclave.runner.cloud.accounts import Credential, RoleSession, SecretDenied
from exclave.runner.cloud.document import CloudDocument, parse_document
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.cloud.identities import CloudIdentities
from exclave.runner.cloud.sigv4 import AwsKeys
from exclave.wire.jobs import JsonValue
from exclave.wire.runner import Dispatch
from exclave.wire.specs import ActionSpec
from exclave.wire.stacks import Cloud
from tests.unit.runner.harness import FakeWriter

AT = datetime(2026, 11, 17, 12, 30, 45, tzinfo=UTC)
INSTALL = f"ins_{'0' * 26}"
ROLE = "acme-maintenance"
ARN = f"arn:aws:iam::123456789012:role/{ROLE}"


class StepClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def now(self) -> datetime:
        return AT + timedelta(seconds=self.passed_s)

    def monotonic(self) -> float:
        return self.passed_s

    async def sleep(self, seconds: float) -> None:
        self.passed_s += seconds


class HidingWriter(FakeWriter):
    """Records what is to be masked."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden: list[str] = []

    def hide(self, secrets: object) -> None:
        self.hidden += [secret.reveal() for secret in secrets]  # type: ignore[attr-defined]


@dataclass
class FakeAccount:
    """An account whose roles last as long as a test says."""

    clock: StepClock
    lasts_s: float = 900.0
    is_down: bool = False
    sessions: list[RoleSession] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    denied: bool = False

    async def read_secret(self, reference: str) -> Secret | None:
        self._refuse()
        text = self.texts.get(reference, "")
        return Secret(text) if text.strip() else None

    async def has_secret(self, reference: str) -> str:
        self._refuse()
        return "1" if self.texts.get(reference, "") else ""

    async def write_secret(self, reference: str, value: Secret) -> None:
        self.texts[reference] = value.reveal()

    async def read_oldest(self, reference: str) -> Secret | None:
        return await self.read_secret(reference)

    async def assume_role(self, session: RoleSession, resource: str = "") -> Credential:
        if self.is_down:
            raise CloudRefused("STS does not answer")
        self.sessions.append(session)
        self.resources.append(resource)
        number = len(self.sessions)
        ends = self.clock.now() + timedelta(seconds=self.lasts_s)
        keys = AwsKeys(f"AKIA{number}", Secret(f"secret-{number}"), Secret(f"session-{number}"))
        return Credential(ends, keys=keys, token=Secret(f"token-{number}"))

    def _refuse(self) -> None:
        if self.denied:
            raise SecretDenied("AccessDeniedException", status=400)
        if self.is_down:
            raise CloudRefused("Secrets Manager does not answer")


def write_document(**changes: JsonValue) -> str:
    """Return the text of a document, as the Stack of AWS writes it."""
    document: dict[str, JsonValue] = {
        "format": 1,
        "install": INSTALL,
        "generator": "0.1.0",
        "digest": "d1",
        "bundle": {"version": "0.1.0", "x86_64": "a" * 64, "aarch64": "b" * 64},
        "enabled": "true",
        "mode": "full",
        "updates": "auto",
        "proxy": "",
        "seal": "seal-arn",
        "log": "/exclave/acme",
        "outputs": {
            "region": "eu-west-1",
            "project_id": "customer",
            "subscription_id": "sub-1",
            "subscription_tenant_id": "tenant-1",
            "provision_iam_role_arn": "arn:aws:iam::123456789012:role/acme-provision",
            "maintenance_iam_role_arn": ARN,
            "custom_role_arns": {"support": "arn:aws:iam::123456789012:role/x/support"},
            "break_glass_role_arns": {"admin": "arn:aws:iam::123456789012:role/admin"},
        },
        "roles": {"acme-provision": "true", ROLE: "true", "support": "true", "admin": "false"},
        "secrets": {"db": "db-arn"},
        "inputs_base64": {"domain": "YWNtZS5leGFtcGxl"},
        "input_secrets": {},
    }
    return json.dumps({**document, **changes})


def read_document(**changes: JsonValue) -> CloudDocument:
    """Return a document with some of its fields changed."""
    return parse_document(write_document(**changes))


def make_dispatch(role: JsonObject | None, *, mutating: bool = False) -> Dispatch:
    """Return a job of an action, as an envelope brings it."""
    spec = ActionSpec.model_validate(
        {"steps": [{"name": "a", "script": "true"}], **({"role": role} if role else {})}
    )
    return Dispatch(
        org_id=f"org_{'0' * 26}",
        queue_id=INSTALL,
        runner_id=f"run_{'0' * 26}",
        job_id=f"job_{'0' * 26}",
        execution_id=f"exe_{'0' * 26}",
        epoch=1,
        sequence=1,
        nonce=f"non_{'0' * 26}",
        issued_at=AT,
        expires_at=AT,
        mutating=mutating,
        lanes=[],
        spec=spec,
    )


WISH: Mapping[str, JsonValue] = {"name": ROLE, "operation": "trigger"}


@dataclass
class Site:
    """The roles of one runner, with all that they write."""

    folder: Path
    cloud: Cloud = Cloud.AWS
    document: CloudDocument | None = field(default_factory=read_document)
    fault: str = ""

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.clock = StepClock()
        self.account = FakeAccount(self.clock)
        self.log = HidingWriter()
        self.audit_file = self.folder / "audit.jsonl"
        self.identities = CloudIdentities(
            self.cloud,
            self.account,
            lambda: self.document,
            self.clock,
            SeededRandomness(1),
            Audit(self.audit_file, self.clock),
            lambda role: f"set Enable{role}",
            lambda: self.fault,
        )

    def read_events(self, event: str) -> list[dict[str, JsonValue]]:
        """Return the facts of the audit's entries of one kind."""
        lines = [json.loads(line) for line in self.audit_file.read_text().splitlines()]
        return [line["facts"] for line in lines if line["event"] == event]
