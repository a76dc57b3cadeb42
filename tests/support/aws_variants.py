"""Models of AWS Stacks that differ in what an app may have."""

from dataclasses import replace

from exclave.base.json_values import JsonObject
from exclave.stacks.model import AccountPin, InputModel, NestedModel, PolicyModel, StackModel
from tests.support.aws_stacks import ROLES, make_model

TOPIC = """
Parameters:
  VpcCidr: {Type: String}
  Size: {Type: Number, Default: 3}
Conditions:
  IsLarge: !Not [!Equals [!Ref Size, 3]]
Resources:
  Topic:
    Type: AWS::SNS::Topic
    Properties: {DisplayName: !Sub "${VpcCidr}-${Size}"}
  Spare:
    Type: AWS::SNS::Topic
    Condition: IsLarge
Outputs:
  TopicArn: {Value: !Ref Topic}
  SpareArn: {Value: !Ref Spare, Condition: IsLarge}
  About: {Value: 'the "shop"'}
"""


def _make_large_policy(index: int) -> PolicyModel:
    buckets = [f"arn:aws:s3:::acme-shop-{index}-{number:03d}" for number in range(100)]
    statement: JsonObject = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": buckets}
    return PolicyModel(
        f"part {index}", document={"Version": "2012-10-17", "Statement": [statement]}
    )


FULL = make_model()
SMALL = make_model(
    account=AccountPin("us-west-1"), roles=ROLES[:3], secrets=(), inputs=(), wanted_outputs=()
)
NESTED = make_model(
    network_template="https://templates.example/vpc/byo-vpc/stack.yaml",
    nested=(NestedModel("topic", 0, "./topic.yaml", TOPIC),),
    inputs=(InputModel("big", type="number"), InputModel("zones", type="list", required=True)),
    instance_type="t4g.large",
)
LARGE = make_model(
    roles=(
        replace(ROLES[0], policies=tuple(_make_large_policy(index) for index in range(4))),
        *ROLES[1:],
    )
)
VARIANTS: dict[str, StackModel] = {"full": FULL, "small": SMALL, "nested": NESTED, "large": LARGE}
