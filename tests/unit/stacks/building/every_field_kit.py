"""An app with something of everything that its Stack is made from, changed in one key."""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.model.fields import Field, Shape, Table
from exclave.appconfig.model.kinds.operation_roles import OperationRoles, RoleRule
from exclave.appconfig.model.kinds.permissions import BreakGlassFile, PermissionsFile, Role
from exclave.appconfig.model.kinds.runner import Runner
from exclave.appconfig.model.kinds.secrets import Secret, SecretsFile
from exclave.appconfig.model.kinds.shared import OPERATIONS
from exclave.appconfig.model.kinds.stack import STACK_TYPES, Stack
from exclave.appconfig.read_app import CheckedApp, read_app
from exclave.domain.stacks import Cloud
from exclave.jobspec.roles import RoleFacts, RoleQuestion, choose_role
from exclave.jobspec.secrets import make_secrets_job
from exclave.stacks.building.directory import build_from_directory
from exclave.stacks.building.example import make_example
from exclave.stacks.digest import digest_model
from exclave.stacks.guide_text import write_instructions
from exclave.stacks.model import StackModel
from exclave.stacks.registry import find_cloud_stack
from exclave.stacks.reporting.permissions import build_report
from exclave.stacks.reporting.permissions_text import write_markdown
from exclave.wire.kubernetes import InCluster
from tests.unit.appconfig.directories import make_app

At = tuple[str | int, ...]
FILES: Mapping[str, type[Table]] = {
    "stack.toml": Stack,
    "runner.toml": Runner,
    "permissions.toml": PermissionsFile,
    "break_glass.toml": BreakGlassFile,
    "secrets.toml": SecretsFile,
    "operation_roles.toml": OperationRoles,
}
"""The files whose every key is to have an effect."""
SAYS_SO = frozenset(
    {
        Code.NOT_APPLIED,
        Code.NEEDLESS_KEY,
        Code.CLOUD_MISMATCH,
        Code.UNKNOWN_TEMPLATE,
        Code.DEPRECATED,
        Code.UNKNOWN_CHOICE,
    }
)
"""What a diagnostic about a key says: it has no effect here, or only one value is possible."""
_ALLOWING = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}],
    }
)
_OTHER = _ALLOWING.replace("GetObject", "PutObject")
_TOPIC = """
Parameters: {Size: {Type: String, Default: "1"}}
Resources: {Topic: {Type: "AWS::SNS::Topic", Properties: {DisplayName: {Ref: Size}}}}
"""
_RIGHTS: Mapping[str, Mapping[str, Any]] = {
    "aws": {"contents": _ALLOWING},
    "gcp": {"gcp_permissions": ["storage.buckets.get"]},
    "azure": {"azure_actions": ["Microsoft.Storage/*/read"]},
}
VALUES: Mapping[str, Any] = {
    "contents": _OTHER,
    "permissions_boundary": _OTHER,
    "template_url": "./other.yaml",
    "parameters": {"Size": "{{.nuon.install.id}}"},
    "managed_policy_name": "ReadOnlyAccess",
    "default": "other",
    "deployment_scope": "subscription",
    "principal": "nuon::component:api",
    "role": "{{.nuon.install.id}}-maintenance",
    "cloud_platform": "gcp",
    "source": "shared/runner.toml",
    "namespaces": ["other"],
}
"""Values for keys that must name something, or have to differ from what is usual."""
OLD_SYNC = frozenset({"kubernetes_sync", "kubernetes_secret_namespace", "kubernetes_secret_name"})
"""Keys of secrets without targets."""


@dataclass(frozen=True)
class Key:
    """A key of a file, and the description of it."""

    file: str
    at: At
    table: type[Table]
    field: Field

    def __str__(self) -> str:
        return f"{self.file}: {'.'.join(map(str, self.at))} ({self.table.__name__})"


def list_keys() -> Iterator[Key]:
    """List every key of every table below the files, by its first place."""
    seen: set[tuple[str, str]] = set()
    for file, model in FILES.items():
        for key in _walk(file, (), model):
            if (key.table.__name__, key.field.key) not in seen:
                seen.add((key.table.__name__, key.field.key))
                yield key


def _walk(file: str, at: At, model: type[Table]) -> Iterator[Key]:
    for key, field in model.FIELDS.items():
        yield Key(file, (*at, key), model, field)
        if field.model is not None:
            inner = (*at, key) if field.shape is Shape.TABLE else (*at, key, 0)
            yield from _walk(file, inner, field.model)


def make_files(cloud: str) -> dict[str, dict[str, Any]]:
    """Return the files of the app, as data."""
    rights = _RIGHTS[cloud]
    shared = {"named_policies": [{"name": "shared"}]} if cloud == "aws" else {}

    def make_role(name: str, **more: Any) -> dict[str, Any]:
        words = {"description": name, "display_name": name}
        return {
            "name": f"{{{{.nuon.install.id}}}}-{name}",
            **words,
            "policies": [{"name": "rights", **rights}],
            **shared,
            **more,
        }

    policy = {"name": "shared", "description": "s", "contents": _ALLOWING}
    target = {"namespaces": ["app"], "name": "db", "key": "password"}
    secret = {"name": "db", "display_name": "d", "description": "d"}
    nested = {"name": "topic", "index": 1, "template_url": "./topic.yaml", "parameters": {}}
    return {
        "stack.toml": {
            "type": next(name for name, of in STACK_TYPES.items() if of == cloud),
            "name": "acme",
            "description": "Acme",
            **({"custom_nested_stacks": [nested]} if cloud == "aws" else {}),
        },
        "runner.toml": {"runner_type": cloud},
        "permissions.toml": {
            "provision_role": make_role("provision", enabled_in_stack=True),
            "maintenance_role": make_role("maintenance"),
            "deprovision_role": make_role("deprovision"),
            "custom_roles": [make_role("support")],
            **({"named_policies": [policy]} if cloud == "aws" else {}),
        },
        "break_glass.toml": {"role": [make_role("emergency", enabled_in_stack=False)]},
        "secrets.toml": {
            "secret": [
                {**secret, "kubernetes_sync_targets": [target]},
                {
                    **secret,
                    "name": "old",
                    "kubernetes_sync": True,
                    "kubernetes_secret_namespace": "app",
                    "kubernetes_secret_name": "old",
                },
            ]
        },
        "operation_roles.toml": {
            "type": "matrix",
            "rules": [
                {
                    "principal": "nuon::component:*",
                    "operation": "deploy",
                    "role": "{{.nuon.install.id}}-support",
                }
            ],
        },
    }


def change(files: Mapping[str, Any], key: Key) -> dict[str, Any]:
    """Return the files with another value of one key, or without it."""
    changed: dict[str, Any] = copy.deepcopy(dict(files))
    parent = changed[key.file]
    *way, name = key.at
    for step in ["secret", 1] if name in OLD_SYNC else way:
        parent = parent[step]
    if key.field.model is not None:
        parent.pop(name, None)
    else:
        parent[name] = _choose_value(key.field, parent.get(name))
    return changed


def _choose_value(field: Field, before: Any) -> Any:
    """Return a value that the key may have, and has not."""
    if field.key in VALUES:
        return VALUES[field.key]
    if field.choices:
        return next((name for name in field.choices if name != before), f"{before}-other")
    match field.shape:
        case Shape.FLAG:
            return not before
        case Shape.NUMBER:
            return (before or 0) + 1
        case Shape.TEXTS:
            return ["other"]
        case Shape.TEXT_MAP:
            return {"OTHER": "1"}
        case _:
            return "https://example.com/other" if field.format == "url" else f"{before or ''}other"


def write_app(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> CheckedApp:
    """Write an app, and read it."""
    texts = {name: _write_toml(data) for name, data in files.items()}
    texts |= {"topic.yaml": _TOPIC, "other.yaml": _TOPIC.replace("Topic:", "Other:")}
    texts["shared/runner.toml"] = 'instance_type = "t3.large"\n'
    return read_app(make_app(folder, texts))


def _write_toml(data: Mapping[str, Any]) -> str:
    return "".join(f"{name} = {_write_value(value)}\n" for name, value in data.items())


def _write_value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{name} = {_write_value(item)}" for name, item in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_write_value, value))}]"
    return json.dumps(value)


@dataclass(frozen=True)
class Outcome:
    """What becomes of an app: what is made, and what the vendor is told."""

    jobs: tuple[str, ...]
    """The model of the Stack, and what is decided about jobs."""
    files: tuple[str, ...]
    """Empty if there are errors."""
    told: frozenset[tuple[str, str]]
    """Codes and messages."""

    def says_no_effect(self, other: "Outcome", key: Key) -> bool:
        """Return whether there is news that a key has no effect, or is only for another cloud."""
        return any(
            code in SAYS_SO and (code == Code.CLOUD_MISMATCH or f"`{key.field.key}`" in message)
            for code, message in self.told - other.told
        )

    def differs(self, other: "Outcome") -> bool:
        """Return whether something else is made; files tell only if neither has errors."""
        return self.jobs != other.jobs or bool(
            self.files and other.files and self.files != other.files
        )


class _Bare:
    """The Stack of a cloud that has none yet: its model is all that there is."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud

    def check(self, model: StackModel) -> tuple[()]:
        del model
        return ()


def find_outcome(checked: CheckedApp, cloud: str) -> Outcome:
    """Return what becomes of an app in a cloud."""
    stack = find_cloud_stack(cloud)
    known: Any = stack or _Bare(Cloud(cloud))
    built = build_from_directory(checked, known, make_example("acme", Cloud(cloud)), {})
    told = frozenset((str(item.code), item.message) for item in built.diagnostics)
    jobs = (digest_model(built.model), checked.app.cloud, *_list_jobs(checked))
    files: tuple[str, ...] = ()
    if stack is not None and built.is_ok:
        guide = stack.write_guide(built.model, None)
        report = write_markdown(build_report(built.model, ()))
        files = (
            *(file.content for file in stack.render(built.model).files),
            write_instructions(built.model, guide),
            report,
        )
    return Outcome(jobs, files, told)


def _list_jobs(checked: CheckedApp) -> Iterator[str]:
    """List what the app's secrets and roles decide about jobs."""
    app = checked.app
    yield make_secrets_job(app.list(Secret), lambda text, _: text, InCluster()).model_dump_json()
    facts = RoleFacts(app.list(Role, "permissions"), app.list(RoleRule))
    for operation in OPERATIONS:
        for principal in ("nuon::sandbox", "nuon::component:api", "nuon::component:web"):
            yield choose_role(RoleQuestion(operation, principal), facts)  # type: ignore[arg-type]
