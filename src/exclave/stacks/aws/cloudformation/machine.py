"""The runner's machine in CloudFormation: log, launch template, a group of one."""

from exclave.stacks.aws.boot import build_boot_script
from exclave.stacks.aws.cloudformation.builder import TemplateBuilder, write_tags
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
    Base64,
    Native,
    Node,
    ParameterKind,
    ParameterRef,
    ResourceRef,
    When,
)
from exclave.stacks.aws.resources import (
    REPOSITORY,
    RUNNER_GROUP,
    RUNNER_LOG,
    RUNNER_PROFILE,
    RUNNER_TEMPLATE,
    SECURITY_GROUP,
    get_arn,
)
from exclave.stacks.model import StackModel

_KEY = When("HasKey", ParameterRef("KmsKeyArn"))
_ONE = When("Enabled", "1", "0")


def add_machine(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the log, the template of the machine and the group that keeps one of it running."""
    builder.add(
        RUNNER_LOG,
        {
            "LogGroupName": write_log_name(model),
            "RetentionInDays": ParameterRef("LogDays", ParameterKind.NUMBER),
            "KmsKeyId": _KEY,
            "Tags": write_tags(list_guarded_tags(model)),
        },
    )
    name = f"{write_prefix(model)}-runner"
    template: dict[str, Node] = {
        "LaunchTemplateName": name,
        "LaunchTemplateData": _write_launch(model),
    }
    builder.add(RUNNER_TEMPLATE, template)
    _add_group(builder, model, name)


def add_registry(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the repository that the app's images are copied to."""
    builder.add(
        REPOSITORY,
        {
            "RepositoryName": f"exclave/{model.install_id}".lower(),
            "ImageTagMutability": "IMMUTABLE",
            "ImageScanningConfiguration": {"ScanOnPush": True},
            "EmptyOnDelete": True,
            "Tags": write_tags(list_tags(model)),
        },
    )


def _write_launch(model: StackModel) -> Node:
    disk: dict[str, Node] = {
        "VolumeSize": ParameterRef("DiskGiB", ParameterKind.NUMBER),
        "VolumeType": VOLUME,
        "Encrypted": True,
        "DeleteOnTermination": True,
        "KmsKeyId": _KEY,
    }
    tags = write_tags(list_machine_tags(model))
    return {
        "ImageId": write_image(),
        "InstanceType": ParameterRef("InstanceType"),
        "IamInstanceProfile": {"Arn": get_arn(RUNNER_PROFILE)},
        "SecurityGroupIds": [ResourceRef(SECURITY_GROUP)],
        "MetadataOptions": {
            "HttpEndpoint": METADATA.endpoint,
            "HttpTokens": METADATA.tokens,
            "HttpPutResponseHopLimit": METADATA.hops,
            "InstanceMetadataTags": METADATA.tags,
        },
        "BlockDeviceMappings": [{"DeviceName": DEVICE, "Ebs": disk}],
        "UserData": Base64(build_boot_script(model)),
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")
        ],
    }


def _add_group(builder: TemplateBuilder, model: StackModel, name: str) -> None:
    version = {"Fn::GetAtt": [RUNNER_TEMPLATE.name, "LatestVersionNumber"]}
    tags: list[Node] = [
        {"Key": key, "Value": value, "PropagateAtLaunch": False}
        for key, value in list_guarded_tags(model).items()
    ]
    builder.add(
        RUNNER_GROUP,
        {
            "AutoScalingGroupName": name,
            "MinSize": _ONE,
            "MaxSize": _ONE,
            "DesiredCapacity": _ONE,
            "HealthCheckType": "EC2",
            "HealthCheckGracePeriod": GRACE_S,
            "VPCZoneIdentifier": [get_runner_subnet()],
            "LaunchTemplate": {
                "LaunchTemplateId": ResourceRef(RUNNER_TEMPLATE),
                "Version": Native(version),
            },
            "Tags": tags,
        },
        UpdatePolicy={"AutoScalingRollingUpdate": {"MinInstancesInService": 0, "MaxBatchSize": 1}},
    )
