"""Models of Azure Stacks for tests, that differ in what an app may have."""

import json
from dataclasses import replace
from typing import Any

from exclave.domain.stacks import Cloud, RoleKind
from exclave.stacks.base import SigningKey
from exclave.stacks.model import (
    AccountPin,
    InputModel,
    NestedModel,
    PolicyModel,
    ProgramPins,
    RoleModel,
    SecretModel,
    StackModel,
)
from tests.support.emulated_azure.deployment import SUBSCRIPTION, TENANT

INSTALL = "ins_01jd0000000000000000000000"
REGION = "westeurope"
ACTIONS = PolicyModel("read", azure_actions=("Microsoft.Storage/*/read", "*/read"))
OWNER = PolicyModel("all", azure_roles=("Contributor", "Role Based Access Control Administrator"))
ROLES = (
    RoleModel(
        "provision", RoleKind.PROVISION, f"{INSTALL}-provision", "Provision", policies=(OWNER,)
    ),
    RoleModel(
        "maintenance",
        RoleKind.MAINTENANCE,
        f"{INSTALL}-maintenance",
        "Maintenance",
        description="Deploys components",
        policies=(
            PolicyModel("all", azure_roles=("contributor",)),
            ACTIONS,
            PolicyModel("more", azure_actions=("Microsoft.Web/sites/restart/action", "*/read")),
        ),
    ),
    RoleModel(
        "deprovision", RoleKind.DEPROVISION, f"{INSTALL}-deprovision", "Remove", policies=(OWNER,)
    ),
    RoleModel(
        "report",
        RoleKind.CUSTOM,
        "[reports]",
        "Report",
        policies=(PolicyModel(azure_roles=("acdd72a7-3385-48ef-bd42-f606fba81ae7",)),),
    ),
    RoleModel(
        "break_glass_admin",
        RoleKind.BREAK_GLASS,
        f"{INSTALL}-break-glass-admin",
        "Emergency",
        enabled=False,
        policies=(PolicyModel(azure_roles=("Owner",)),),
    ),
)
TEMPLATE = json.dumps(
    {
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "contentVersion": "1.0.0.0",
        "parameters": {
            "size": {"type": "int"},
            "about": {"type": "string", "defaultValue": "[resourceGroup().name]"},
        },
        "resources": [],
        "outputs": {"topic": {"type": "string", "value": "[parameters('about')]"}},
    }
)


def make_model(**changes: Any) -> StackModel:
    """Return the model of an install with something of everything."""
    facts: dict[str, Any] = {
        "install_id": INSTALL,
        "install": "acme",
        "org_id": "org_01",
        "app": "shop",
        "cloud": Cloud.AZURE,
        "account": AccountPin(REGION, SUBSCRIPTION, TENANT),
        "stack_name": "acme-shop",
        "description": "The runner of Shop for ACME",
        "runner_url": "https://runners.vendor.example",
        "keys": (SigningKey("k1", "A" * 43),),
        "program": ProgramPins("0.1.0", "0" * 64, "1" * 64),
        "roles": ROLES,
        "secrets": (
            SecretModel("db_password", "Database password", required=True),
            SecretModel("session_key", auto_generate=True),
            SecretModel("smtp_password", description="It's only for mails"),
        ),
        "inputs": (
            InputModel("domain", "Domain", required=True),
            InputModel("nodes", type="number", default="3"),
            InputModel("zones", type="list", default="a,b"),
            InputModel("debug", type="bool", default="false"),
            InputModel("api_key", sensitive=True),
        ),
        "wanted_outputs": ("registry.url",),
    }
    return StackModel(**{**facts, **changes})


GIVEN = {"dbPasswordSecret": "v4lue-of-the-database", "installDomain": 'shop."acme".example'}
"""What the customer fills in."""
FULL = make_model()
SMALL = make_model(
    account=AccountPin(""), roles=ROLES[:3], secrets=(), inputs=(), wanted_outputs=()
)
NESTED = make_model(
    nested=(
        NestedModel("topic", 0, "", TEMPLATE, {"size": "3"}),
        NestedModel("more", 1, "https://templates.example/more.json", "", {"name": "[x]"}),
    ),
    inputs=(InputModel("big", type="number"), InputModel("zones", type="list", required=True)),
    instance_type="Standard_D2ps_v5",
)
WHOLE = replace(FULL, deployment_scope="subscription")
VARIANTS: dict[str, StackModel] = {"full": FULL, "small": SMALL, "nested": NESTED, "whole": WHOLE}
