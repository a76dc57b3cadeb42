"""Synced apps written directly into the database, and installs of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from exclave.appconfig.stored.parts import FrozenPart
from exclave.base.digests import digest_json
from exclave.control.deps import Deps
from exclave.control.installs import installs
from exclave.domain.configs import NewConfig
from exclave.domain.four_eyes import Author
from exclave.domain.identity import OrgId, User
from exclave.storage import apps, configs
from exclave.storage.engine.database import Tx
from exclave.storage.tables.apps import builds as builds_table
from exclave.storage.tables.apps import config_builds
from exclave.wire.installs import InstallReply, NewInstall

INPUTS: tuple[Mapping[str, Any], ...] = (
    {"name": "domain", "group": "web", "required": True, "description": "Where it is served."},
    {"name": "replicas", "group": "web", "type": "number", "default": "2"},
    {"name": "debug", "group": "ops", "type": "bool", "default": "false"},
    {"name": "api_key", "group": "ops", "sensitive": True},
    {"name": "zone", "group": "ops", "user_configurable": True, "default": "a"},
)
COMPONENTS: tuple[Mapping[str, Any], ...] = (
    {"name": "network", "needs": [], "inputs": []},
    {"name": "api", "needs": ["network"], "inputs": ["domain", "replicas"]},
    {"name": "web", "needs": ["api"], "inputs": ["debug"]},
    {"name": "jobs", "needs": ["network"], "inputs": ["api_key"]},
)
SOURCE: Mapping[str, Any] = {
    "type": "git",
    "url": "https://example.com/shop",
    "ref": "main",
    "directory": ".",
}
ACTION: Mapping[str, Any] = {
    "name": "check",
    "timeout": "1m",
    "triggers": [{"type": "manual"}],
    "steps": [{"name": "ask", "inline_contents": "#!/bin/sh\ntrue\n"}],
}
RUNBOOK: Mapping[str, Any] = {
    "name": "refresh",
    "steps": [{"name": "look", "type": "action", "action_name": "check"}],
}
README = "# {{ .nuon.install.name }}\n\nServed at {{ .nuon.inputs.inputs.domain }}.\n"


async def make_app(deps: Deps, user: User, name: str = "shop", **more: Any) -> str:
    """Create an app with one config and return its id."""
    app_id = deps.ids.new("app")
    await deps.db.write(lambda tx: apps.add_app(tx, user.org, app_id, name, user.name))
    await add_config(deps, user, app_id, **more)
    return app_id


async def add_config(deps: Deps, user: User, app_id: str, **more: Any) -> str:
    """Add the next config of an app and return its id."""
    config_id = deps.ids.new("cfg")
    await deps.db.write(lambda tx: _add_config(tx, deps, user.org, app_id, config_id, **more))
    return config_id


async def make_app_install(
    deps: Deps, user: User, app: str, name: str = "acme", **more: Any
) -> InstallReply:
    """Create an install of an app."""
    inputs = {"domain": "acme.test", **more.pop("inputs", {})}
    wish = NewInstall(name=name, app=app, inputs=inputs, **more)
    return await installs.create_install(deps, user, wish)


def _add_config(
    tx: Tx,
    deps: Deps,
    org: OrgId,
    app_id: str,
    config_id: str,
    *,
    inputs: Sequence[Mapping[str, Any]] = INPUTS,
    components: Sequence[Mapping[str, Any]] = COMPONENTS,
    secrets: Sequence[Mapping[str, Any]] = (),
    readme: str = README,
    cloud: str = "local",
    sandbox_inputs: Sequence[str] = (),
    sandbox_hash: str = "s1",
    labels: Mapping[str, str] | None = None,
    action: Mapping[str, Any] = ACTION,
    more_parts: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> None:
    version = configs.read_last_version(tx, org, app_id) + 1
    listed = [
        {
            "type": "terraform_module",
            "hash": f"hash of {each['name']}",
            "toggleable": False,
            "default_enabled": False,
            **each,
        }
        for each in components
    ]
    configs.add_config(
        tx,
        org,
        NewConfig(
            id=config_id,
            app_id=app_id,
            version=version,
            digest=f"sha256:{version:064d}",
            archive="none",
            archive_digest="sha256:0",
            author=Author("test"),
            outline={
                "components": listed,
                "order": [[each["name"]] for each in listed],
                "sandbox": {"inputs": list(sandbox_inputs), "hash": sandbox_hash},
                "actions": [{"name": "check", "triggers": [{"type": "manual"}]}],
                "runbooks": ["refresh"],
                "inputs": [each["name"] for each in inputs],
                "secrets": [each["name"] for each in secrets],
                "cloud": cloud,
            },
        ),
    )
    groups = [{"name": name} for name in dict.fromkeys(each["group"] for each in inputs)]
    source = {"repo": ".", "directory": "src"}
    terraform = {"terraform_version": "1.11.3", "public_repo": source}
    sections: Mapping[str, Sequence[Mapping[str, Any]]] = {
        "input": inputs,
        "input_group": groups,
        "secret": secrets,
        "action": [action],
        "runbook": [RUNBOOK],
        "component": [{"name": each["name"], "type": each["type"], **terraform} for each in listed],
        **(more_parts or {}),
    }
    rows = [(section, each["name"], each) for section, many in sections.items() for each in many]
    about = {"version": "v2", "readme": readme, "default_labels": dict(labels or {})}
    rows += [("sandbox", "", terraform), ("metadata", "", about)]
    configs.add_parts(
        tx,
        org,
        config_id,
        [FrozenPart(section, name, digest_json(value), value) for section, name, value in rows],
    )
    apps.set_config(tx, org, app_id, config_id)
    parts = ["sandbox", *(f"component:{each['name']}" for each in listed)]
    for part in parts:
        _add_build(tx, deps, org, app_id, config_id, part)


def _add_build(tx: Tx, deps: Deps, org: OrgId, app_id: str, config_id: str, part: str) -> None:
    build_id = deps.ids.new("bui")
    row = {
        "org_id": org,
        "id": build_id,
        "app_id": app_id,
        "part": part,
        "key": build_id,
        "state": "succeeded",
        "source": SOURCE,
        "repository": "apps/shop",
        "digest": "sha256:" + "1" * 64,
        "created_at": tx.now,
        "created_by": "test",
        "finished_at": tx.now,
    }
    tx.insert_each(builds_table, [row])
    pin = {"org_id": org, "config_id": config_id, "part": part, "build_id": build_id}
    tx.insert_each(config_builds, [pin])
