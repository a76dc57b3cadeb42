"""What an auditor would list in an account, without the names that the cloud makes up."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from tests.support.emulated_aws.server import EmulatedAws

_MADE_UP = ("stack_id", "vpc_id", "runner_subnet", "public_subnets", "private_subnets",
            "runner_security_group")  # fmt: skip
_GENERATED = (63, 64)


class Inventory:
    """Everything in an emulated account, by kind and name."""

    def __init__(self, aws: EmulatedAws) -> None:
        self.aws = aws
        self.secrets = aws.connect("secretsmanager").list_secrets()["SecretList"]
        self.names = {secret["ARN"]: _name_secret(secret) for secret in self.secrets}

    def read(self) -> dict[str, Any]:
        """Return it."""
        return {
            **self._read_policies(),
            **self._read_roles(),
            **self._read_network(),
            **self._read_secrets(),
            **self._read_machine(),
        }

    def _read_policies(self) -> dict[str, Any]:
        iam = self.aws.connect("iam")
        found = {}
        for policy in iam.list_policies(Scope="Local")["Policies"]:
            version = iam.get_policy_version(
                PolicyArn=policy["Arn"], VersionId=policy["DefaultVersionId"]
            )
            document = _parse(version["PolicyVersion"]["Document"])
            found[f"policy {policy['PolicyName']}"] = self._rename(_sort_statements(document))
        return found

    def _read_roles(self) -> dict[str, Any]:
        iam = self.aws.connect("iam")
        return {
            f"role {role['RoleName']}": self._read_role(iam, role["RoleName"])
            for role in iam.list_roles()["Roles"]
        }

    def _read_role(self, iam: Any, name: str) -> dict[str, Any]:
        role = iam.get_role(RoleName=name)["Role"]
        inline = {
            policy: self._rename(
                _sort_statements(
                    _parse(iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"])
                )
            )
            for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]
        }
        attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        return {
            "trust": _sort_statements(_parse(role["AssumeRolePolicyDocument"])),
            "inline": inline,
            "attached": sorted(policy["PolicyName"] for policy in attached),
            "boundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn"),
            "path": role["Path"],
            "about": role.get("Description"),
            "seconds": role.get("MaxSessionDuration"),
            "tags": _read_tags(role),
        }

    def _read_network(self) -> dict[str, Any]:
        ec2 = self.aws.connect("ec2")
        vpcs = [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]]
        ids = {vpc["VpcId"] for vpc in vpcs}
        found: dict[str, Any] = {"vpc": [(vpc["CidrBlock"], _read_tags(vpc)) for vpc in vpcs]}
        for subnet in ec2.describe_subnets()["Subnets"]:
            if subnet["VpcId"] in ids:
                tags = _read_tags(subnet)
                zone = subnet["AvailabilityZone"]
                found[f"subnet {tags['Name']}"] = (subnet["CidrBlock"], zone, tags)
        tables = [t for t in ec2.describe_route_tables()["RouteTables"] if t["VpcId"] in ids]
        found["routes"] = sorted(_read_routes(table) for table in tables)
        endpoints = ec2.describe_vpc_endpoints()["VpcEndpoints"]
        found["endpoints"] = [(e["ServiceName"], len(e["RouteTableIds"])) for e in endpoints]
        groups = ec2.describe_security_groups()["SecurityGroups"]
        found["groups"] = [
            (group["Description"], group["IpPermissions"])
            for group in groups
            if group["GroupName"] != "default"
        ]
        found["nat"] = len(ec2.describe_nat_gateways()["NatGateways"])
        return found

    def _read_secrets(self) -> dict[str, Any]:
        client = self.aws.connect("secretsmanager")
        found = {}
        for secret in self.secrets:
            has_value = bool(secret.get("SecretVersionsToStages"))
            value = (
                client.get_secret_value(SecretId=secret["ARN"])["SecretString"] if has_value else ""
            )
            about = (self._read_value(value), secret.get("Description", ""), _read_tags(secret))
            found[f"secret {self.names[secret['ARN']]}"] = about
        return found

    def _read_value(self, value: str) -> Any:
        if value.startswith('{"'):
            document = self._rename(json.loads(value))
            for name in _MADE_UP:
                document["outputs"].pop(name, None)
            return document
        # What is blank was not given.
        return f"<{len(value)} generated>" if len(value) in _GENERATED else value.strip()

    def _read_machine(self) -> dict[str, Any]:
        ec2 = self.aws.connect("ec2")
        (template,) = ec2.describe_launch_templates()["LaunchTemplates"]
        versions = ec2.describe_launch_template_versions(
            LaunchTemplateId=template["LaunchTemplateId"]
        )["LaunchTemplateVersions"]
        data = versions[-1]["LaunchTemplateData"]
        (group,) = self.aws.connect("autoscaling").describe_auto_scaling_groups()[
            "AutoScalingGroups"
        ]
        logs = self.aws.connect("logs").describe_log_groups()["logGroups"]
        repositories = self.aws.connect("ecr").describe_repositories()["repositories"]
        disk = data["BlockDeviceMappings"][0]["Ebs"]
        metadata = data["MetadataOptions"]
        return {
            "image": data["ImageId"],
            "type": data["InstanceType"],
            "metadata": (metadata["HttpTokens"], metadata["HttpPutResponseHopLimit"]),
            "disk": {name: str(value).lower() for name, value in disk.items()},
            "script": self._rename(base64.b64decode(data["UserData"]).decode()),
            "group": (group["MinSize"], group["MaxSize"], group["DesiredCapacity"]),
            "machines": len(group["Instances"]),
            "logs": [(log["logGroupName"], log["retentionInDays"]) for log in logs],
            "repositories": [(r["repositoryName"], r["imageTagMutability"]) for r in repositories],
        }

    def _rename(self, value: Any) -> Any:
        """Return a value with the ARNs of secrets replaced by what they are for."""
        text = json.dumps(value)
        for arn, name in self.names.items():
            text = text.replace(arn, f"<{name}>")
        return json.loads(text)


def list_differences(left: Any, right: Any, path: str = "") -> list[str]:
    """List where two inventories differ."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        keys = sorted(set(left) | set(right))
        return [
            difference
            for key in keys
            for difference in list_differences(left.get(key), right.get(key), f"{path}/{key}")
        ]
    same = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
    return [] if same else [f"{path}: {left!r:.300} is not {right!r:.300}"]


def _name_secret(secret: Any) -> str:
    tags = _read_tags(secret)
    for key in ("exclave:secret", "exclave:input"):
        if key in tags:
            return str(tags[key])
    return str(secret["Description"][:20])


def _read_tags(thing: Any) -> dict[str, str]:
    tags = {tag["Key"]: tag["Value"] for tag in thing.get("Tags", [])}
    return {key: tags[key] for key in sorted(tags) if not key.startswith("aws:")}


def _read_routes(table: Any) -> list[Any]:
    ways = [
        (
            route.get("DestinationCidrBlock", "prefixes"),
            next((kind for kind in ("nat-", "igw-", "vpce-") if kind in str(route)), "local"),
        )
        for route in table["Routes"]
    ]
    return [sorted(ways), len([a for a in table["Associations"] if a.get("SubnetId")])]


def _parse(document: Any) -> Any:
    return json.loads(document) if isinstance(document, str) else document


def _sort_statements(document: Any) -> Any:
    statements = document["Statement"]
    if isinstance(statements, list):
        document["Statement"] = sorted(statements, key=lambda s: str(s.get("Sid", "")))
    return document
