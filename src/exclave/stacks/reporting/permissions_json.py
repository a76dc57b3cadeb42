"""The report of permissions as JSON, for programs."""

import json

from exclave.base.json_values import Json
from exclave.stacks.reporting.permissions import PermissionReport, RoleReport

FORMAT = 1


def write_json(report: PermissionReport) -> str:
    """Return the report as JSON; the same report gives the same text."""
    document: dict[str, Json] = {
        "format": FORMAT,
        "app": report.app,
        "install": report.install,
        "cloud": str(report.cloud),
        "roles": [_describe_role(role) for role in report.roles],
        "secrets": [
            {"name": item.name, "required": item.required, "auto_generate": item.auto_generate}
            for item in report.secrets
        ],
        "inputs": [
            {"name": item.name, "required": item.required, "sensitive": item.sensitive}
            for item in report.inputs
        ],
        "templates": [
            {"name": item.name, "address": item.address, "resources": dict(item.resources)}
            for item in report.templates
        ],
        "destinations": [
            {"host": item.host, "who": item.who, "reason": item.reason}
            for item in report.destinations
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _describe_role(role: RoleReport) -> Json:
    rights = role.rights
    return {
        "key": role.key,
        "kind": str(role.kind),
        "name": role.name,
        "title": role.title,
        "description": role.description,
        "enabled": role.enabled,
        "has_boundary": role.has_boundary,
        "is_everything": rights.is_everything,
        "services": {
            service.name: {str(level): count for level, count in service.counts.items()}
            for service in rights.services
        },
        "named": [{"name": grant.name, "meaning": grant.meaning} for grant in rights.named],
        "data": list(rights.data),
        "widening": list(rights.widening),
        "unknown": list(rights.unknown),
        "notes": list(rights.notes),
    }
