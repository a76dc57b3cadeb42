# ruff: noqa: INP001 - programs beside the pages they write, not a package
"""The tables of the page about the Stack in AWS, read off its CloudFormation template."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from docs.stack_pages.example import build_example
from exclave.domain.stacks import Cloud
from exclave.stacks.aws.cloudformation.template import build_template
from exclave.stacks.aws.parameters import StackParameter, list_parameters

MODEL = build_example(Cloud.AWS, "eu-west-1", wanted_outputs=("registry",))
PURPOSE = {
    "AWS::AutoScaling::AutoScalingGroup": "keeps one machine running, none while stopped",
    "AWS::EC2::EIP": "the address from which the machine and the app reach the internet",
    "AWS::EC2::InternetGateway": "the way out of the new VPC",
    "AWS::EC2::LaunchTemplate": "the machine: Ubuntu 24.04, encrypted disk, no SSH key",
    "AWS::EC2::NatGateway": "lets private subnets reach out, and nothing in",
    "AWS::EC2::Route": "ways out of public and private subnets",
    "AWS::EC2::RouteTable": "one for public and one for private subnets",
    "AWS::EC2::SecurityGroup": "nothing comes in; out go HTTPS and all within the VPC",
    "AWS::EC2::Subnet": "public and private ones in up to three zones, and the runner's own",
    "AWS::EC2::SubnetRouteTableAssociation": "ties each subnet to its routes",
    "AWS::EC2::VPC": "the network, if you name none of yours",
    "AWS::EC2::VPCEndpoint": "keeps traffic to S3 off the NAT gateway",
    "AWS::EC2::VPCGatewayAttachment": "ties the internet gateway to the VPC",
    "AWS::ECR::Repository": "copies of the app's images; only for apps that read it",
    "AWS::IAM::InstanceProfile": "gives the machine the runner's role",
    "AWS::IAM::ManagedPolicy": "the guard below; boundaries and large policies of the app",
    "AWS::IAM::Role": "the runner's own role, and those of the app that jobs run with",
    "AWS::Logs::LogGroup": "the runner's log; it stays in your account",
    "AWS::SecretsManager::Secret": "secrets and sensitive inputs, the document, the seal",
}


def list_tables() -> Mapping[str, Iterable[str]]:
    """Return the rows of each table by its placeholder in `aws.txt`."""
    template: Any = build_template(MODEL)
    resources = template["Resources"]
    own = resources["RunnerRole"]["Properties"]["Policies"][0]
    guard = resources["Guard"]["Properties"]
    return {
        "RESOURCES": _write_resources(resources),
        "RUNNER": _write_statements(own),
        "GUARD": _write_statements(guard),
        "PARAMETERS": map(_write_parameter, list_parameters(MODEL)),
    }


def _write_resources(resources: Mapping[str, Any]) -> Iterator[str]:
    types = [body["Type"] for body in resources.values()]
    for name in sorted(set(types)):
        yield f"| `{name}` | {types.count(name)} | {PURPOSE[name]} |"


def _write_statements(policy: Mapping[str, Any]) -> Iterator[str]:
    for entry in policy["PolicyDocument"]["Statement"]:
        condition, statement = entry.get("Fn::If", ("", entry))[:2]
        actions = statement["Action"]
        listed = [actions] if isinstance(actions, str) else actions
        texts = ", ".join(f"`{action}`" for action in listed)
        yield f"| `{statement['Sid']}` | {texts} | {f'`{condition}`' if condition else ''} |"


def _write_parameter(parameter: StackParameter) -> str:
    default = "required" if parameter.default is None else _write_code(parameter.default)
    about = parameter.about or parameter.label
    return f"| `{parameter.name}` | `{parameter.variable}` | {default} | {about} |"


def _write_code(text: str) -> str:
    return f"`{json.dumps(text)[1:-1]}`" if text else ""
