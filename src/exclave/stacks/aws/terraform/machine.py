"""The runner's machine in Terraform: log, launch template, a group of one."""

from exclave.stacks.aws.boot import build_boot_script
from exclave.stacks.aws.machine import (
    DEVICE,
    GRACE_S,
    METADATA,
    VOLUME,
    list_machine_tags,
    write_image,
    write_log_name,
)
from exclave.stacks.aws.names import list_guarded_tags, list_tags, write_prefix
from exclave.stacks.aws.network import get_runner_subnet
from exclave.stacks.aws.references import (
    Native,
    Node,
    ParameterKind,
    ParameterRef,
    Resource,
    ResourceRef,
    When,
)
from exclave.stacks.aws.resources import (
    NEW_VPC,
    PRIVATE_ROUTE,
    REPOSITORY,
    ROUTES,
    RUNNER_GROUP,
    RUNNER_LOG,
    RUNNER_PROFILE,
    RUNNER_TEMPLATE,
    SECURITY_GROUP,
    get_arn,
)
from exclave.stacks.aws.terraform.builder import ModuleBuilder
from exclave.stacks.aws.terraform.expressions import write_address, write_value
from exclave.stacks.model import StackModel

_KEY = When("HasKey", ParameterRef("KmsKeyArn"))
_ONE = When("Enabled", 1, 0)
_WAY_OUT = (PRIVATE_ROUTE, Resource(ROUTES, "RoutesOfRunnerSubnet", NEW_VPC))
"""Without these the machine would start before it can reach anything."""


def add_machine(builder: ModuleBuilder, model: StackModel) -> None:
    """Add the log, the template of the machine and the group that keeps one of it running."""
    builder.add(
        RUNNER_LOG,
        {
            "name": write_log_name(model),
            "retention_in_days": ParameterRef("LogDays", ParameterKind.NUMBER),
            "kms_key_id": _KEY,
            "tags": list_guarded_tags(model),
        },
    )
    name = f"{write_prefix(model)}-runner"
    builder.add_local("boot_script", write_value(build_boot_script(model)))
    builder.add(RUNNER_TEMPLATE, {"name": name, **_write_launch(model)})
    _add_group(builder, model, name)


def add_registry(builder: ModuleBuilder, model: StackModel) -> None:
    """Add the repository that the app's images are copied to."""
    builder.add(
        REPOSITORY,
        {
            "name": f"exclave/{model.install_id}".lower(),
            "image_tag_mutability": "IMMUTABLE",
            "image_scanning_configuration": [{"scan_on_push": True}],
            "force_delete": True,
            "tags": list_tags(model),
        },
    )


def _write_launch(model: StackModel) -> dict[str, Node]:
    disk: dict[str, Node] = {
        "volume_size": ParameterRef("DiskGiB", ParameterKind.NUMBER),
        "volume_type": VOLUME,
        "encrypted": "true",
        "delete_on_termination": "true",
        "kms_key_id": _KEY,
    }
    metadata: dict[str, Node] = {
        "http_endpoint": METADATA.endpoint,
        "http_tokens": METADATA.tokens,
        "http_put_response_hop_limit": METADATA.hops,
        "instance_metadata_tags": METADATA.tags,
    }
    return {
        "image_id": write_image(),
        "instance_type": ParameterRef("InstanceType"),
        "iam_instance_profile": [{"arn": get_arn(RUNNER_PROFILE)}],
        "vpc_security_group_ids": [ResourceRef(SECURITY_GROUP)],
        "metadata_options": [metadata],
        "block_device_mappings": [{"device_name": DEVICE, "ebs": [disk]}],
        "user_data": Native("base64encode(local.boot_script)"),
        "update_default_version": True,
        "tag_specifications": [
            {"resource_type": kind, "tags": list_machine_tags(model)}
            for kind in ("instance", "volume")
        ],
    }


def _add_group(builder: ModuleBuilder, model: StackModel, name: str) -> None:
    template = write_address(RUNNER_TEMPLATE)
    tags: list[Node] = [
        {"key": key, "value": value, "propagate_at_launch": False}
        for key, value in list_guarded_tags(model).items()
    ]
    builder.add(
        RUNNER_GROUP,
        {
            "name": name,
            "min_size": _ONE,
            "max_size": _ONE,
            "desired_capacity": _ONE,
            "health_check_type": "EC2",
            "health_check_grace_period": GRACE_S,
            "vpc_zone_identifier": [get_runner_subnet()],
            "wait_for_capacity_timeout": "0",
            "launch_template": [
                {
                    "id": ResourceRef(RUNNER_TEMPLATE),
                    "version": Native(f"{template}.latest_version"),
                }
            ],
            "instance_refresh": [
                {"strategy": "Rolling", "preferences": [{"min_healthy_percentage": 0}]}
            ],
            "tag": tags,
        },
        depends_on=[write_address(resource) for resource in _WAY_OUT],
    )
