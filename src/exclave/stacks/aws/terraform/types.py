"""Types of resources in CloudFormation and in Terraform."""

from collections.abc import Mapping
from typing import Final

TYPES: Final[Mapping[str, str]] = {
    "AWS::AutoScaling::AutoScalingGroup": "aws_autoscaling_group",
    "AWS::CloudFormation::Stack": "aws_cloudformation_stack",
    "AWS::EC2::EIP": "aws_eip",
    "AWS::EC2::InternetGateway": "aws_internet_gateway",
    "AWS::EC2::LaunchTemplate": "aws_launch_template",
    "AWS::EC2::NatGateway": "aws_nat_gateway",
    "AWS::EC2::Route": "aws_route",
    "AWS::EC2::RouteTable": "aws_route_table",
    "AWS::EC2::SecurityGroup": "aws_security_group",
    "AWS::EC2::Subnet": "aws_subnet",
    "AWS::EC2::SubnetRouteTableAssociation": "aws_route_table_association",
    "AWS::EC2::VPC": "aws_vpc",
    "AWS::EC2::VPCEndpoint": "aws_vpc_endpoint",
    "AWS::EC2::VPCGatewayAttachment": "aws_internet_gateway_attachment",
    "AWS::ECR::Repository": "aws_ecr_repository",
    "AWS::IAM::InstanceProfile": "aws_iam_instance_profile",
    "AWS::IAM::ManagedPolicy": "aws_iam_policy",
    "AWS::IAM::Role": "aws_iam_role",
    "AWS::Logs::LogGroup": "aws_cloudwatch_log_group",
    "AWS::SecretsManager::Secret": "aws_secretsmanager_secret",
}
"""Both forms name a resource the same: `FooBar` here is `foo_bar` there."""
