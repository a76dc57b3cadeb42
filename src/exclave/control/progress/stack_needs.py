"""What a job needs of a Stack in a cloud that the version which the customer runs does not have."""

import re
from collections.abc import Iterable, Mapping

from exclave.base.json_values import JsonObject
from exclave.control.stack_versions.stored_models import read_model
from exclave.domain.identity import OrgId
from exclave.stacks.model import StackModel
from exclave.storage import stacks
from exclave.storage.engine.database import Tx
from exclave.storage.engine.types import write_json

_SECRET = re.compile(r"\(\(exclave:secret:([^()]{1,200})\)\)")


def find_lack(tx: Tx, org: OrgId, install: str, job: JsonObject) -> str:
    """Return what a job waits for until the customer applies the newest version; empty: nothing.

    Only what the newest version has is waited for: the runner refuses any other role itself. A job
    without a role does nothing in a cloud.
    """
    role = job.get("role")
    if not isinstance(role, Mapping):
        return ""
    run, newest = stacks.find_run(tx, org, install), stacks.find_newest(tx, org, install)
    if run is None or newest is None or run.version >= newest.version:
        return ""
    before, after = (_find_model(tx, org, version.id) for version in (run, newest))
    if before is None or after is None:
        return ""
    lacking = [
        *_list_new("role", [str(role.get("name"))], _list_roles(before), _list_roles(after)),
        *_list_new("secret", _list_asked(job), _list_secrets(before), _list_secrets(after)),
    ]
    if not lacking:
        return ""
    has = "which version" if len(lacking) == 1 else "all of which version"
    return (
        f"the Stack that the customer runs (version {run.version}) lacks {', '.join(lacking)},"
        f" {has} {newest.version} has"
    )


def _find_model(tx: Tx, org: OrgId, version: str) -> StackModel | None:
    stored = stacks.find_model(tx, org, version)
    return None if stored is None else read_model(stored)


def _list_asked(job: JsonObject) -> list[str]:
    """List the secrets that a job names: by placeholders, or as those that it copies."""
    named = set(_SECRET.findall(write_json(job)))
    copied = job.get("secrets")
    if isinstance(copied, list):
        named |= {str(item["name"]) for item in copied if isinstance(item, dict) and "name" in item}
    return sorted(named)


def _list_new(
    noun: str, asked: Iterable[str], before: frozenset[str], after: frozenset[str]
) -> list[str]:
    return [f"the {noun} `{name}`" for name in asked if name in after - before]


def _list_roles(model: StackModel) -> frozenset[str]:
    return frozenset(role.name for role in model.roles)


def _list_secrets(model: StackModel) -> frozenset[str]:
    return frozenset(secret.name for secret in model.secrets)
