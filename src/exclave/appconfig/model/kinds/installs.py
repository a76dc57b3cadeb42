"""`installs/`, `installs.toml`: the values of single installs."""

from collections.abc import Mapping

from exclave.appconfig.model.fields import (
    NEW,
    REQUIRED,
    Shape,
    Table,
    flag,
    table,
    table_map,
    tables,
    text,
    text_map,
)
from exclave.appconfig.model.kinds.shared import Repos
from exclave.appconfig.model.kinds.stack import NestedStack


class AwsAccount(Table):
    """An account of AWS."""

    region: str = text("Where.", '"us-east-1"', need=REQUIRED)
    account_id: str = text("Which.", '"123456789012"', since=NEW)


class AzureAccount(Table):
    """An account of Azure."""

    location: str = text("Where.", '"westeurope"', since=NEW)
    subscription_id: str = text("Which.", '"00000000-0000-0000-0000-000000000000"', since=NEW)
    tenant_id: str = text(
        "The tenant of the subscription; the two are given together.",
        '"00000000-0000-0000-0000-000000000000"',
        since=NEW,
    )


class GcpAccount(Table):
    """A project of GCP."""

    project_id: str = text("Which.", '"acme"', since=NEW)
    region: str = text("Where.", '"us-central1"', since=NEW)


class ComponentOverride(Table):
    """What one install changes about one component; wins over everything else."""

    helm_values: str = text("Helm values in YAML.", '"replicas: 3"', since=NEW)
    tf_vars: str = text("Terraform variables in tfvars.", "'size = \"small\"'", since=NEW)


class StackOverrides(Table):
    """What one install changes about the Stack."""

    vpc_nested_template_url: str = text(
        "The template of the network.",
        '"https://example.s3.amazonaws.com/vpc.yaml"',
        since=NEW,
        format="url",
    )
    runner_nested_template_url: str = text(
        "The template of the runner.",
        '"https://example.s3.amazonaws.com/runner.yaml"',
        since=NEW,
        format="url",
    )
    custom_nested_stacks: tuple[NestedStack, ...] = tables(
        NestedStack, "Further templates.", since=NEW
    )


class Telemetry(Table):
    """What the install reports about itself."""

    enabled: bool | None = flag("Whether it reports at all.", default=None, since=NEW)


class Install(Table):
    """The values of one install."""

    name: str = text("Finds the install if it exists already.", '"acme-prod"', need=REQUIRED)
    approval_option: str = text(
        "Who approves plans.",
        '"approve-all"',
        choices=("prompt", "approve-all", "auto"),
        default="prompt",
    )
    aws_account: AwsAccount | None = table(AwsAccount, "For AWS.")
    azure_account: AzureAccount | None = table(AzureAccount, "For Azure.", since=NEW)
    gcp_account: GcpAccount | None = table(GcpAccount, "For GCP.", since=NEW)
    inputs: Mapping[str, str] = text_map(
        "Values of inputs: a table, or one `[[inputs]]` per group; later ones win.",
        '{ domain = "example.com" }',
        shape=Shape.MAPS,
    )
    labels: Mapping[str, str] = text_map(
        "Labels; values may be templates, keys not.",
        '{ tier = "canary" }',
        since=NEW,
        templated=True,
    )
    app_branch: str = text("The branch it follows.", '"main"', since=NEW)
    app_branch_group: str = text("Its group in that branch.", '"canary"', since=NEW)
    component_toggles: Mapping[str, bool] = text_map(
        "Which toggleable components are on.", "{ search = true }", since=NEW, shape=Shape.FLAG_MAP
    )
    components: Mapping[str, ComponentOverride] = table_map(
        ComponentOverride, "What it changes about single components.", since=NEW
    )
    stack_overrides: StackOverrides | None = table(
        StackOverrides, "What it changes about the Stack.", since=NEW
    )
    telemetry: Telemetry | None = table(Telemetry, "What it reports about itself.", since=NEW)


class InstallsPointer(Repos):
    """Where the files of installs lie, if not here."""
