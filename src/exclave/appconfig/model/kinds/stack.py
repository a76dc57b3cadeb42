"""`stack.toml`: what the customer applies in their own account."""

from collections.abc import Mapping

from exclave.appconfig.model.fields import (
    NEW,
    REQUIRED,
    WANTED,
    Table,
    number,
    tables,
    text,
    text_map,
)

STACK_TYPES: Mapping[str, str] = {
    "aws-cloudformation": "aws",
    "azure-bicep": "azure",
    "gcp-terraform": "gcp",
}


class NestedStack(Table):
    """A template of the vendor's that becomes a part of the Stack."""

    name: str = text("Unique.", '"database"', need=REQUIRED, since=NEW)
    template_url: str = text(
        "An S3 URL, a `./file` (its content is uploaded), ARM JSON, or `<repo>//path` for GCP.",
        '"./cloudformation/database.yaml"',
        need=REQUIRED,
        since=NEW,
        templated=True,
        reference=True,
    )
    index: int | None = number(
        "Unique; they run in ascending order.", "1", default=None, need=REQUIRED, since=NEW
    )
    parameters: Mapping[str, str] = text_map(
        "Templates over inputs, install, app and org.",
        '{ Size = "{{.nuon.inputs.inputs.size}}" }',
        templated=True,
        since=NEW,
    )


class Stack(Table):
    """What the customer applies in their own account."""

    type: str = text("The language of the Stack.", choices=tuple(STACK_TYPES))
    name: str = text(
        "The name in the customer's account.",
        '"acme-{{.nuon.install.id}}"',
        need=WANTED,
        templated=True,
    )
    description: str = text("Shown there.", '"Acme"', need=WANTED, templated=True)
    vpc_nested_template_url: str = text(
        "AWS: the public template of the network; a Stack has its own instead of it.",
        '"https://example.s3.amazonaws.com/vpc/eks/default/stack.yaml"',
        templated=True,
        format="url",
    )
    runner_nested_template_url: str = text(
        "AWS: the public template of the runner; a Stack has its own instead of it.",
        '"https://example.s3.amazonaws.com/runner/asg/stack.yaml"',
        templated=True,
        format="url",
    )
    deployment_scope: str = text(
        "Azure only; absent: `resource_group`.",
        choices=("resource_group", "subscription"),
        since=NEW,
    )
    custom_nested_stacks: tuple[NestedStack, ...] = tables(
        NestedStack, "Further templates that are applied with the Stack.", since=NEW
    )
