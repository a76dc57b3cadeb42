"""The resources of a Stack by name, type and condition, the same in both forms."""

from collections.abc import Mapping

from exclave.stacks.azure.names import (
    CERTIFICATES,
    DOCUMENT,
    write_input_name,
    write_key,
    write_name,
    write_role_identity,
    write_runner_identity,
    write_secret_name,
)
from exclave.stacks.azure.parameters import name_switch
from exclave.stacks.azure.references import (
    Attribute,
    Child,
    Fact,
    Guid,
    Resource,
    ResourceRef,
)
from exclave.stacks.model import InputModel, RoleModel, SecretModel, StackModel
from exclave.stacks.naming import write_camel, write_snake

NEW_NETWORK = "NewNetwork"
ENABLED = "Enabled"
FULL = "Full"
"""Enabled, and not limited to plans."""
PLAN_ONLY = "PlanOnly"
"""Enabled, and limited to plans."""
HAS_CERTIFICATES = "HasCertificates"

ADDRESS = "Microsoft.Network/publicIPAddresses"
DEFINITION = "Microsoft.Authorization/roleDefinitions"
ASSIGNMENT = "Microsoft.Authorization/roleAssignments"
DEPLOYMENT = "Microsoft.Resources/deployments"
GROUP = "Microsoft.Resources/resourceGroups"
IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities"
LOG_RULES = "Microsoft.Insights/dataCollectionRules"
MACHINE = "Microsoft.Compute/virtualMachineScaleSets"
NAT = "Microsoft.Network/natGateways"
NETWORK = "Microsoft.Network/virtualNetworks"
REGISTRY = "Microsoft.ContainerRegistry/registries"
SECRET = "Microsoft.KeyVault/vaults/secrets"  # noqa: S105 - a type, no secret
SECURITY_GROUP = "Microsoft.Network/networkSecurityGroups"
VAULT = "Microsoft.KeyVault/vaults"

TWINS: Mapping[str, str] = {
    ADDRESS: "azurerm_public_ip",
    DEFINITION: "azurerm_role_definition",
    ASSIGNMENT: "azurerm_role_assignment",
    DEPLOYMENT: "azurerm_resource_group_template_deployment",
    GROUP: "azurerm_resource_group",
    IDENTITY: "azurerm_user_assigned_identity",
    MACHINE: "azurerm_linux_virtual_machine_scale_set",
    NAT: "azurerm_nat_gateway",
    NETWORK: "azurerm_virtual_network",
    REGISTRY: "azurerm_container_registry",
    SECRET: "azurerm_key_vault_secret",
    SECURITY_GROUP: "azurerm_network_security_group",
    VAULT: "azurerm_key_vault",
}
"""Types of Azure and of Terraform: `FooBar` here is `foo_bar` there."""

RUNNER_VAULT = Resource(VAULT, "RunnerVault", (Fact.RUNNER_VAULT,))
SECRET_VAULT = Resource(VAULT, "SecretVault", (Fact.SECRET_VAULT,))
STACK_DOCUMENT = Resource(SECRET, "StackDocument", (Fact.RUNNER_VAULT, DOCUMENT))
CA_BUNDLE = Resource(SECRET, "CaBundle", (Fact.RUNNER_VAULT, CERTIFICATES), (HAS_CERTIFICATES,))
IMAGE_REGISTRY = Resource(REGISTRY, "ImageRegistry", (Fact.REGISTRY,))
SECRET_WRITER = Resource(DEFINITION, "SecretWriter", (Guid("secret-writer"),))
FIXED = (
    "RunnerVault", "SecretVault", "StackDocument", "CaBundle", "ImageRegistry", "SecretWriter",
    "RunnerSecurityGroup", "NatAddress", "NatGateway", "Network", "RunnerIdentity",
    "RunnerMachine", "RunnerLog", "PrivateSubnet", "PublicSubnet", "RunnerSubnet", "ResourceGroup",
    "AppliersRunnerVault", "AppliersSecretVault",
)  # fmt: skip
"""The names of all resources but those of roles, secrets, inputs and templates of the vendor."""


def name_security_group(model: StackModel) -> Resource:
    """Return what lets nothing in to the machine."""
    return Resource(SECURITY_GROUP, "RunnerSecurityGroup", (write_name(model, "runner"),))


def name_address(model: StackModel) -> Resource:
    """Return the address from which the internet is reached."""
    return Resource(ADDRESS, "NatAddress", (write_name(model, "nat"),), (NEW_NETWORK,))


def name_gateway(model: StackModel) -> Resource:
    """Return the way out."""
    return Resource(NAT, "NatGateway", (write_name(model, "nat"),), (NEW_NETWORK,))


def name_network(model: StackModel) -> Resource:
    """Return the network, which exists if no subnet is named."""
    return Resource(NETWORK, "Network", (write_name(model, "network"),), (NEW_NETWORK,))


def name_log(model: StackModel) -> Resource:
    """Return the deployment of the store of the runner's log."""
    return Resource(DEPLOYMENT, "RunnerLog", (write_name(model, "log"),))


def name_log_rule(model: StackModel) -> Resource:
    """Return the rule that lines of the log are posted to, which that deployment makes."""
    return Resource(LOG_RULES, "LogRule", (write_name(model, "log"),))


def name_machine(model: StackModel) -> Resource:
    """Return the scale set that keeps one machine."""
    return Resource(MACHINE, "RunnerMachine", (write_name(model, "runner"),))


def name_runner_identity(model: StackModel) -> Resource:
    """Return the identity of the runner itself."""
    return Resource(IDENTITY, "RunnerIdentity", (write_runner_identity(model),))


def name_identity(model: StackModel, role: RoleModel) -> Resource:
    """Return the identity that jobs of a role have."""
    return Resource(IDENTITY, f"{write_key(role)}Identity", (write_role_identity(model, role),))


def name_definition(role: RoleModel) -> Resource:
    """Return the actions of a role as a role of Azure."""
    name = f"{write_key(role)}Definition"
    return Resource(DEFINITION, name, (Guid(write_snake(name)),))


def name_assignment(owner: str, what: str, *conditions: str) -> Resource:
    """Return a right of an identity."""
    name = f"{owner}{what}Assignment"
    return Resource(ASSIGNMENT, name, (Guid(write_snake(name)),), conditions)


def name_secret(secret: SecretModel) -> Resource:
    """Return the place of a secret of the app."""
    title = (Fact.SECRET_VAULT, write_secret_name(secret))
    return Resource(SECRET, f"Secret{write_camel(secret.name)}", title)


def name_input(item: InputModel) -> Resource:
    """Return the place of a sensitive input."""
    title = (Fact.SECRET_VAULT, write_input_name(item))
    return Resource(SECRET, f"Input{write_camel(item.name)}Value", title)


def name_nested(name: str, index: int, model: StackModel) -> Resource:
    """Return the deployment of a template of the vendor."""
    return Resource(
        DEPLOYMENT, f"Nested{write_camel(name)}", (write_name(model, "nested", str(index)),)
    )


def get_subnet(model: StackModel, kind: str) -> Child:
    """Return the id of a subnet of the new network."""
    return Child(name_network(model), "subnets", kind, f"azurerm_subnet.{kind}_subnet")


def get_principal(identity: Resource) -> ResourceRef:
    """Return by what rights are given to an identity."""
    return ResourceRef(identity, Attribute.PRINCIPAL)


def get_client(identity: Resource) -> ResourceRef:
    """Return by what tokens of an identity are asked for."""
    return ResourceRef(identity, Attribute.CLIENT)


def list_identities(model: StackModel) -> tuple[Resource, ...]:
    """Return all identities, which the machine has: the runner's first."""
    return (
        name_runner_identity(model),
        *(name_identity(model, role) for role in model.roles),
    )


def list_switch(role: RoleModel, mode: str) -> tuple[str, str]:
    """Return the conditions under which a role has its rights in a mode."""
    return (mode, name_switch(role))
