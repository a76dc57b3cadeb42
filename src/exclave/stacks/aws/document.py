"""The document that a Stack writes for its runner: what it made and what the customer chose.

It holds no secret. What the customer filled in and what the vendor's own templates return stands in
it as base64, so that no quote in it can break the JSON.
"""

from collections.abc import Mapping

from exclave import __version__
from exclave.domain.stacks import RoleKind
from exclave.stacks.aws.names import write_role_arn, write_role_name, write_runner_name
from exclave.stacks.aws.network import get_runner_subnet, get_vpc, list_subnets
from exclave.stacks.aws.parameters import BREAK_GLASS_END, build_input_parameter
from exclave.stacks.aws.references import (
    Attribute,
    Base64,
    Commas,
    Fact,
    Node,
    ParameterKind,
    ParameterRef,
    ResourceRef,
    Text,
    When,
    join_text,
)
from exclave.stacks.aws.resources import (
    NEW_VPC,
    REPOSITORY,
    RUNNER_LOG,
    SEAL,
    SECURITY_GROUP,
    get_arn,
    name_input,
    name_secret,
    name_switch,
)
from exclave.stacks.digest import digest_model
from exclave.stacks.model import StackModel

FORMAT = 1
STANDARD = (RoleKind.PROVISION, RoleKind.MAINTENANCE, RoleKind.DEPROVISION)
NestedOutputs = Mapping[str, Mapping[str, Text]]


def build_stack_document(model: StackModel, nested: NestedOutputs) -> Mapping[str, Node]:
    """Return the document; `nested` are the outputs of the vendor's own templates."""
    return {
        "format": FORMAT,
        "outputs": build_outputs(model),
        "install": model.install_id,
        "generator": __version__,
        "digest": digest_model(model),
        "bundle": {
            "version": model.program.version,
            "x86_64": model.program.x86_64,
            "aarch64": model.program.aarch64,
        },
        "enabled": ParameterRef("RunnerEnabled", ParameterKind.FLAG),
        "mode": ParameterRef("RunnerMode"),
        "updates": ParameterRef("RunnerUpdates"),
        "proxy": ParameterRef("ProxyUrl"),
        "mirror": ParameterRef("MirrorUrl"),
        # Only the boot script reads it: the runner's own TLS is made before it knows the document.
        "ca_bundle": ParameterRef("CaBundleParameter"),
        "seal": get_arn(SEAL),
        "log": ResourceRef(RUNNER_LOG, Attribute.NAME),
        "roles": {
            role.name: ParameterRef(name_switch(role), ParameterKind.FLAG) for role in model.roles
        },
        "role_ends": {
            role.name: ParameterRef(BREAK_GLASS_END)
            for role in model.list_roles(RoleKind.BREAK_GLASS)
        },
        "secrets": {secret.name: get_arn(name_secret(secret)) for secret in model.secrets},
        "inputs_base64": {
            item.name: Base64(build_input_parameter(item).reference)
            for item in model.inputs
            if not item.sensitive
        },
        "input_secrets": {
            item.name: get_arn(name_input(item)) for item in model.inputs if item.sensitive
        },
        "nested_outputs_base64": {
            name: {output: Base64(value) for output, value in outputs.items()}
            for name, outputs in nested.items()
        },
    }


def build_outputs(model: StackModel) -> Mapping[str, Node]:
    """Return what the texts of the app read as outputs of the Stack.

    A role that is switched off keeps its ARN here: `roles` says whether it is there.
    """
    arns = [(role, write_role_arn(write_role_name(role))) for role in model.roles]
    standard = {role.kind: arn for role, arn in arns if role.kind in STANDARD}
    outputs: dict[str, Node] = {
        # A resource comes first: cfn-lint tries out all values of the parameters before it.
        "runner_security_group": ResourceRef(SECURITY_GROUP),
        "account_id": Fact.ACCOUNT,
        "region": Fact.REGION,
        "partition": Fact.PARTITION,
        "stack_id": Fact.STACK,
        **_build_network_outputs(model),
        "runner_iam_role_arn": write_role_arn(write_runner_name(model)),
        **{f"{kind}_iam_role_arn": standard[kind] for kind in STANDARD if kind in standard},
    }
    for kind, name in (
        (RoleKind.BREAK_GLASS, "break_glass_role_arns"),
        (RoleKind.CUSTOM, "custom_role_arns"),
    ):
        outputs[name] = {role.name: arn for role, arn in arns if role.kind is kind}
    outputs["log_group"] = ResourceRef(RUNNER_LOG, Attribute.NAME)
    if has_registry(model):
        repository = ResourceRef(REPOSITORY, Attribute.NAME)
        host = join_text(Fact.ACCOUNT, ".dkr.ecr.", Fact.REGION, ".", Fact.DOMAIN)
        outputs["registry"] = {"url": host, "repository": repository}
    return outputs


def has_registry(model: StackModel) -> bool:
    """Return whether the app reads a repository for its images from the Stack."""
    return any(name.split(".", 1)[0] == "registry" for name in model.wanted_outputs)


def _build_network_outputs(model: StackModel) -> Mapping[str, Node]:
    subnets = list_subnets(model)
    own = {
        kind: Commas(tuple(ResourceRef(net.resource) for net in subnets if net.kind == kind))
        for kind in ("public", "private")
    }
    public = ParameterRef("PublicSubnetIds", ParameterKind.LIST)
    private = ParameterRef("PrivateSubnetIds", ParameterKind.LIST)
    return {
        "vpc_id": get_vpc(),
        "runner_subnet": get_runner_subnet(),
        "public_subnets": When(NEW_VPC, own["public"], public),
        "private_subnets": When(NEW_VPC, own["private"], private),
    }
