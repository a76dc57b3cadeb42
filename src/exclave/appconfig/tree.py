"""The values that templates can read, and when they become available."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

ANYTHING = "anything"
"""Below this, names are not known before something ran."""

Branch: TypeAlias = "str | Mapping[str, Branch]"
"""The keys of a level, or the name of the check for what is below it."""

_SANDBOX: Branch = dict.fromkeys(("status", "type", "version", "outputs", "populated"), ANYTHING)
COMPONENT_KEYS = (
    "status", "build_id", "component_id", "install_component_id", "name", "populated", "outputs",
)  # fmt: skip
WORKFLOW_KEYS = ("status", "id", "outputs", "populated")
IMAGE_KEYS = ("repository", "tag", "digest", "ref")
OUTPUTLESS = ("kubernetes_manifest", "job")
STACK_OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "aws": (
        "account_id",
        "region",
        "vpc_id",
        "runner_subnet",
        "public_subnets",
        "private_subnets",
        "provision_iam_role_arn",
        "maintenance_iam_role_arn",
        "deprovision_iam_role_arn",
        "runner_iam_role_arn",
        "break_glass_role_arns",
        "custom_role_arns",
        "install_inputs",
        "custom_nested_stacks",
    ),
    "azure": (
        "resource_group_id",
        "resource_group_name",
        "resource_group_location",
        "subscription_id",
        "subscription_tenant_id",
        "network_id",
        "network_name",
        "public_subnet_ids",
        "public_subnet_names",
        "private_subnet_ids",
        "private_subnet_names",
        "key_vault_id",
        "key_vault_name",
        "install_inputs",
        "custom_nested_stacks",
    ),
    "gcp": (
        "project_id",
        "region",
        "network_name",
        "private_subnet_name",
        "private_subnet_names",
        "gke_node_pool_sa_email",
        "runner_service_account_email",
        "custom_sa_emails",
        "install_inputs",
        "custom_nested_stacks",
    ),
}
"""What the Stack of a cloud reports; there may be more, so only typos of these are reported."""

TREE: Branch = {
    "id": ANYTHING,
    "name": ANYTHING,
    "install": {
        "id": ANYTHING,
        "name": ANYTHING,
        "inputs": "inputs",
        "sandbox": _SANDBOX,
        "components": "components",
        "public_domain": ANYTHING,
        "internal_domain": ANYTHING,
    },
    "org": dict.fromkeys(("id", "name", "status"), ANYTHING),
    "app": dict.fromkeys(("id", "name", "status", "variables"), ANYTHING),
    "labels": ANYTHING,
    "inputs": {"inputs": "inputs"},
    "cloud_account": dict.fromkeys(("aws", "azure", "gcp"), ANYTHING),
    "runner": dict.fromkeys(("id", "runner_group_id", "status"), ANYTHING),
    "install_stack": {
        **dict.fromkeys(
            ("populated", "status", "quick_link_url", "template_url", "template_json", "checksum"),
            ANYTHING,
        ),
        "outputs": "stack_outputs",
    },
    "sandbox": _SANDBOX,
    "domain": ANYTHING,
    "components": "components",
    "actions": {"workflows": "actions", "populated": ANYTHING},
    "secrets": "secrets",
}

HINTS: Mapping[tuple[str, ...], str] = {
    ("install", "secrets"): "Secrets stay in the customer's account; templates see their address: "
    "`.nuon.install_stack.outputs.<name>_arn`.",
    ("install", "sandbox", "account"): "Write `.nuon.install_stack.outputs.account_id`.",
}
"""What to write instead of paths that people expect, and that do not exist."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a section cannot read because it is rendered too early."""

    when: str
    late: tuple[tuple[str, ...], ...]
    hint: str
    soft: bool = False


_AFTER_SANDBOX = (
    ("components",),
    ("install", "components"),
    ("actions",),
)
_AFTER_STACK = (
    *_AFTER_SANDBOX, ("sandbox",), ("install", "sandbox"), ("install_stack", "outputs"),
    ("domain",), ("install", "public_domain"), ("install", "internal_domain"), ("secrets",),
)  # fmt: skip
_STACK_HINT = "Use inputs, or what is known of the install, the app and the org."

SCOPES: Mapping[str, Scope] = {
    "stack": Scope("the Stack is made", _AFTER_STACK, _STACK_HINT),
    "permissions": Scope("the Stack is made", _AFTER_STACK, _STACK_HINT, soft=True),
    "named_policies": Scope("the Stack is made", _AFTER_STACK, _STACK_HINT, soft=True),
    "break_glass": Scope("the Stack is made", _AFTER_STACK, _STACK_HINT, soft=True),
    "secrets": Scope("the Stack is made", _AFTER_STACK, _STACK_HINT, soft=True),
    "sandbox": Scope("the sandbox is made", _AFTER_SANDBOX, "Use inputs, or outputs of the Stack."),
}
