"""Models of Stacks for Google Cloud."""

from typing import Any

from exclave.domain.stacks import Cloud, RoleKind
from exclave.stacks.model import AccountPin, PolicyModel, RoleModel, StackModel
from tests.support.aws_stacks import INSTALL
from tests.support.aws_stacks import make_model as make_aws_model

PROJECT = "acme-prod"
REGION = "europe-west1"
GIVEN = {"db_password_secret": "v4lue-of-the-database", "install_domain": 'shop."acme".example'}
"""What the customer fills in."""
PROVIDERS: dict[str, dict[str, Any]] = {"google": {"project": PROJECT, "region": REGION}}
ROLES = (
    RoleModel(
        "provision",
        RoleKind.PROVISION,
        f"{INSTALL}-provision",
        "Provision",
        policies=(PolicyModel(gcp_role="roles/owner"),),
    ),
    RoleModel(
        "maintenance",
        RoleKind.MAINTENANCE,
        f"{INSTALL}-maintenance",
        "Maintenance",
        description="Deploys ${everything}",
        policies=(
            PolicyModel("buckets", gcp_permissions=("storage.buckets.list", "storage.buckets.get")),
            PolicyModel("clusters", gcp_role="roles/container.admin"),
        ),
    ),
    RoleModel(
        "deprovision",
        RoleKind.DEPROVISION,
        f"{INSTALL}-deprovision",
        "Deprovision",
        policies=(PolicyModel(gcp_role="roles/owner"),),
    ),
    RoleModel(
        "report",
        RoleKind.CUSTOM,
        f"{INSTALL}-report",
        "Report",
        policies=(PolicyModel(gcp_permissions=("storage.buckets.list",)),),
    ),
    RoleModel(
        "break_glass_admin",
        RoleKind.BREAK_GLASS,
        f"{INSTALL}-break-glass-admin",
        "Emergency",
        enabled=False,
        policies=(
            PolicyModel(gcp_role="roles/compute.admin"),
            PolicyModel(gcp_role="roles/editor"),
        ),
    ),
)


def make_model(**changes: Any) -> StackModel:
    """Return the model of an install with something of everything."""
    facts: dict[str, Any] = {
        "cloud": Cloud.GCP,
        "account": AccountPin(REGION, PROJECT),
        "roles": ROLES,
        "wanted_outputs": ("gke_node_pool_sa_email", "registry"),
    }
    return make_aws_model(**{**facts, **changes})
