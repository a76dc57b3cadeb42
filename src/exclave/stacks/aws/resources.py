"""The resources of a Stack by name, type and condition, the same in both forms."""

from exclave.stacks.aws.names import write_key
from exclave.stacks.aws.references import Attribute, Resource, ResourceRef
from exclave.stacks.model import InputModel, RoleModel, SecretModel
from exclave.stacks.naming import write_camel

NEW_VPC = "NewVpc"
SECRET = "AWS::SecretsManager::Secret"  # noqa: S105 - a type, no secret
POLICY = "AWS::IAM::ManagedPolicy"
ROLE = "AWS::IAM::Role"
SUBNET = "AWS::EC2::Subnet"
ROUTES = "AWS::EC2::SubnetRouteTableAssociation"

VPC = Resource("AWS::EC2::VPC", "Vpc", NEW_VPC)
INTERNET_GATEWAY = Resource("AWS::EC2::InternetGateway", "InternetGateway", NEW_VPC)
GATEWAY_ATTACHMENT = Resource(
    "AWS::EC2::VPCGatewayAttachment", "InternetGatewayAttachment", NEW_VPC
)
NAT_ADDRESS = Resource("AWS::EC2::EIP", "NatAddress", NEW_VPC)
NAT_GATEWAY = Resource("AWS::EC2::NatGateway", "NatGateway", NEW_VPC)
PUBLIC_ROUTE_TABLE = Resource("AWS::EC2::RouteTable", "PublicRouteTable", NEW_VPC)
PRIVATE_ROUTE_TABLE = Resource("AWS::EC2::RouteTable", "PrivateRouteTable", NEW_VPC)
PUBLIC_ROUTE = Resource("AWS::EC2::Route", "PublicRoute", NEW_VPC)
PRIVATE_ROUTE = Resource("AWS::EC2::Route", "PrivateRoute", NEW_VPC)
S3_ENDPOINT = Resource("AWS::EC2::VPCEndpoint", "S3Endpoint", NEW_VPC)
RUNNER_SUBNET = Resource(SUBNET, "RunnerSubnet", NEW_VPC)
SECURITY_GROUP = Resource("AWS::EC2::SecurityGroup", "RunnerSecurityGroup")
GUARD = Resource(POLICY, "Guard")
RUNNER_ROLE = Resource(ROLE, "RunnerRole")
RUNNER_PROFILE = Resource("AWS::IAM::InstanceProfile", "RunnerProfile")
SEAL = Resource(SECRET, "SealSecret")
DOCUMENT = Resource(SECRET, "StackDocument")
RUNNER_LOG = Resource("AWS::Logs::LogGroup", "RunnerLog")
RUNNER_TEMPLATE = Resource("AWS::EC2::LaunchTemplate", "RunnerTemplate")
RUNNER_GROUP = Resource("AWS::AutoScaling::AutoScalingGroup", "RunnerGroup")
REPOSITORY = Resource("AWS::ECR::Repository", "ImageRepository")

FIXED = (
    VPC, INTERNET_GATEWAY, GATEWAY_ATTACHMENT, NAT_ADDRESS, NAT_GATEWAY, PUBLIC_ROUTE_TABLE,
    PRIVATE_ROUTE_TABLE, PUBLIC_ROUTE, PRIVATE_ROUTE, S3_ENDPOINT, RUNNER_SUBNET, SECURITY_GROUP,
    GUARD, RUNNER_ROLE, RUNNER_PROFILE, SEAL, DOCUMENT, RUNNER_LOG, RUNNER_TEMPLATE, RUNNER_GROUP,
    REPOSITORY,
)  # fmt: skip
"""All resources but those of subnets, roles, secrets and inputs."""


def name_role(role: RoleModel) -> Resource:
    """Return the role itself; it exists while it is switched on."""
    return Resource(ROLE, f"{write_key(role)}Role", name_switch(role))


def name_boundary(role: RoleModel) -> Resource:
    """Return the boundary that the app gives a role."""
    return Resource(POLICY, f"{write_key(role)}Boundary", name_switch(role))


def name_overflow(role: RoleModel, index: int) -> Resource:
    """Return a policy of the app that is too large to be a part of its role."""
    return Resource(POLICY, f"{write_key(role)}Policy{index}", name_switch(role))


def name_switch(role: RoleModel) -> str:
    """Return the parameter, and the condition, by which the customer has a role or not."""
    return f"Enable{write_key(role)}Role"


def name_secret(secret: SecretModel) -> Resource:
    """Return the place of a secret of the app."""
    return Resource(SECRET, f"Secret{write_camel(secret.name)}")


def name_input(item: InputModel) -> Resource:
    """Return the place of a sensitive input."""
    return Resource(SECRET, f"Input{write_camel(item.name)}Value")


def get_arn(resource: Resource) -> ResourceRef:
    """Return the ARN of a resource."""
    return ResourceRef(resource, Attribute.ARN)
