"""What a stand-in provider answers for the attributes that a cloud would fill in."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

NAMING = ("name", "account_id", "secret_id", "role_id", "repository_id", "service")
"""The attributes that tell two resources of a type apart."""
KNOWN = {
    "google_service_account": {
        "email": "{account_id}@{project}.iam.gserviceaccount.com",
        "name": "projects/{project}/serviceAccounts/{account_id}@{project}.iam.gserviceaccount.com",
        "member": "serviceAccount:{account_id}@{project}.iam.gserviceaccount.com",
        "id": "projects/{project}/serviceAccounts/{account_id}@{project}.iam.gserviceaccount.com",
    },
    "google_secret_manager_secret": {
        "id": "projects/{project}/secrets/{secret_id}",
        "name": "projects/{project}/secrets/{secret_id}",
    },
    "google_project_iam_custom_role": {
        "id": "projects/{project}/roles/{role_id}",
        "name": "projects/{project}/roles/{role_id}",
    },
    "google_compute_network": {"id": "projects/{project}/global/networks/{name}"},
    "google_compute_subnetwork": {
        "id": "projects/{project}/regions/{region}/subnetworks/{name}",
    },
    "azurerm_resource_group_template_deployment": {
        "output_content": '{{"stream": {{"value": "https://{name}"}}}}',
    },
    "data.azurerm_client_config": {
        "tenant_id": "11111111-1111-4111-8111-111111111111",
        "subscription_id": "22222222-2222-4222-8222-222222222222",
        "object_id": "33333333-3333-4333-8333-333333333333",
    },
}
"""What clouds document about the values that they give; the rest is made up."""


def fill(kind: str, values: Mapping[str, Any], name: str, type_: str) -> Any:
    """Return the value that a cloud gives an attribute: the same for the same resource."""
    if type_ != "string":
        return {"number": 1, "bool": False}.get(type_, {} if type_.startswith("map") else [])
    facts = {key: value for key, value in values.items() if isinstance(value, str)}
    template = KNOWN.get(kind, {}).get(name)
    if template is not None and _can_format(template, facts):
        return template.format(**facts)
    return f"{kind}/{identify(values)}/{name}"


def identify(values: Mapping[str, Any]) -> str:
    """Return what a resource is called, or else a hash of all that was said about it."""
    for name in NAMING:
        if isinstance(values.get(name), str):
            return str(values[name])
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _can_format(template: str, facts: Mapping[str, str]) -> bool:
    try:
        template.format(**facts)
    except KeyError:
        return False
    return True
