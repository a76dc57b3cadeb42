"""Models of AWS Stacks for tests, and a stack of one on the emulated AWS."""

import json
import time
from collections.abc import Mapping
from typing import Any

from exclave.base.json_values import JsonObject
from exclave.domain.stacks import Cloud, RoleKind
from exclave.stacks.aws.cloudformation.template import build_template
from exclave.stacks.base import SigningKey
from exclave.stacks.model import (
    AccountPin,
    InputModel,
    PolicyModel,
    ProgramPins,
    RoleModel,
    SecretModel,
    StackModel,
)
from tests.support.emulated_aws.server import ACCOUNT, REGION, EmulatedAws

INSTALL = "ins_01jd0000000000000000000000"
READ_BUCKETS: JsonObject = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["s3:Get*", "s3:List*"], "Resource": "*"}],
}
ROLES = (
    RoleModel(
        "provision",
        RoleKind.PROVISION,
        f"{INSTALL}-provision",
        "Provision",
        policies=(PolicyModel(managed="AdministratorAccess"),),
        boundary=READ_BUCKETS,
    ),
    RoleModel(
        "maintenance",
        RoleKind.MAINTENANCE,
        f"{INSTALL}-maintenance",
        "Maintenance",
        description="Deploys components",
        policies=(PolicyModel(name="buckets", document=READ_BUCKETS),),
    ),
    RoleModel(
        "deprovision",
        RoleKind.DEPROVISION,
        f"{INSTALL}-deprovision",
        "Deprovision",
        policies=(PolicyModel(managed="AdministratorAccess"),),
    ),
    RoleModel(
        "report",
        RoleKind.CUSTOM,
        f"{INSTALL}-report",
        "Report",
        policies=(PolicyModel(name="buckets", document=READ_BUCKETS),),
    ),
    RoleModel(
        "break_glass_admin",
        RoleKind.BREAK_GLASS,
        f"{INSTALL}-break-glass-admin",
        "Emergency",
        enabled=False,
        policies=(PolicyModel(managed="AdministratorAccess"),),
    ),
)


def make_model(**changes: Any) -> StackModel:
    """Return the model of an install with something of everything."""
    facts: dict[str, Any] = {
        "install_id": INSTALL,
        "install": "acme",
        "org_id": "org_01",
        "app": "shop",
        "cloud": Cloud.AWS,
        "account": AccountPin(REGION, ACCOUNT),
        "stack_name": "acme-shop",
        "description": "The runner of Shop for ACME",
        "runner_url": "https://runners.vendor.example",
        "keys": (SigningKey("k1", "A" * 43),),
        "program": ProgramPins("0.1.0", "0" * 64, "1" * 64),
        "roles": ROLES,
        "secrets": (
            SecretModel("db_password", "Database password", required=True),
            SecretModel("session_key", auto_generate=True),
            SecretModel("smtp_password", description="It's only for mails"),
        ),
        "inputs": (
            InputModel("domain", "Domain", required=True),
            InputModel("nodes", type="number", default="3"),
            InputModel("zones", type="list", default="a,b"),
            InputModel("debug", type="bool", default="false"),
            InputModel("api_key", sensitive=True),
        ),
        "wanted_outputs": ("registry.url",),
    }
    return StackModel(**{**facts, **changes})


GIVEN = {"DbPasswordSecret": "v4lue-of-the-database", "InstallDomain": 'shop."acme".example'}
"""What the customer fills in."""


class AppliedTemplate:
    """A template on the emulated AWS, applied as CloudFormation does."""

    def __init__(
        self, aws: EmulatedAws, name: str, template: Mapping[str, Any], values: Mapping[str, str]
    ) -> None:
        self.aws, self.name, self.template = aws, name, template
        self.values = dict(values)
        self.outputs: dict[str, str] = {}

    def create(self, **values: str) -> None:
        """Create the stack; the values stay for updates."""
        self.values |= values
        self._apply("create_stack")

    def update(self, **values: str) -> None:
        """Change parameters; all others keep their values."""
        self.values |= values
        self._apply("update_stack")

    def delete(self) -> None:
        """Delete the stack."""
        self.aws.connect("cloudformation").delete_stack(StackName=self.name)

    def read_document(self) -> dict[str, Any]:
        """Return the document that the runner reads."""
        return dict(json.loads(self.read_secret(self.outputs["StackDocumentArn"])))

    def read_secret(self, arn: str) -> str:
        """Return the value of a secret."""
        value = self.aws.connect("secretsmanager").get_secret_value(SecretId=arn)
        return str(value["SecretString"])

    def _apply(self, operation: str) -> None:
        client = self.aws.connect("cloudformation")
        getattr(client, operation)(
            StackName=self.name,
            TemplateBody=json.dumps(self.template, separators=(",", ":")),
            Parameters=[
                {"ParameterKey": name, "ParameterValue": value}
                for name, value in self.values.items()
            ],
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
        while (stack := self._describe(client))["StackStatus"].endswith("IN_PROGRESS"):
            time.sleep(0.05)
        assert stack["StackStatus"].endswith("E_COMPLETE"), stack
        self.outputs = {item["OutputKey"]: item["OutputValue"] for item in stack["Outputs"]}

    def _describe(self, client: Any) -> Any:
        return client.describe_stacks(StackName=self.name)["Stacks"][0]


class EmulatedStack(AppliedTemplate):
    """A stack of a model on the emulated AWS."""

    def __init__(self, aws: EmulatedAws, model: StackModel) -> None:
        super().__init__(aws, model.stack_name, build_template(model), GIVEN)
        self.model = model
