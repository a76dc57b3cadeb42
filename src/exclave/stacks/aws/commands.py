"""Commands of the AWS command line that a customer pastes, from argv that is data."""

from collections.abc import Iterable, Mapping

from exclave.base.aws_regions import name_service
from exclave.stacks.aws.names import write_prefix, write_role_name
from exclave.stacks.model import StackModel
from exclave.stacks.shell import Inner, Word, write_command

TEMPLATE = "aws.template.json"
PARAMETERS = "aws.parameters.json"
_RIGHTS = ("--capabilities", "CAPABILITY_NAMED_IAM")


class StackCommands:
    """The commands of one Stack.

    The template is a file beside them, or at an address in S3 that CloudFormation reads it from.
    """

    def __init__(self, model: StackModel, template_url: str = "") -> None:
        self.model = model
        self.template = (
            ("--template-url", template_url)
            if template_url
            else ("--template-body", f"file://{TEMPLATE}")
        )
        self.region = ("--region", model.account.region) if model.account.region else ()
        self.stack = ("--stack-name", model.stack_name)

    def create(self) -> str:
        """Create the stack, with the values of the parameter file."""
        return self._call(
            "cloudformation", "create-stack", *self.stack,
            *self.template, "--parameters", f"file://{PARAMETERS}", *_RIGHTS,
        )  # fmt: skip

    def upload(self) -> tuple[str, ...]:
        """Store the template in a bucket of the customer; a large one cannot be sent along."""
        bucket = f"s3://{name_bucket(self.model)}"
        return self._call("s3", "mb", bucket), self._call("s3", "cp", TEMPLATE, f"{bucket}/")

    def remove_upload(self) -> str:
        """Remove that bucket."""
        return self._call("s3", "rb", f"s3://{name_bucket(self.model)}", "--force")

    def wait(self, state: str) -> str:
        """Wait until the stack is created, updated or deleted."""
        return self._call("cloudformation", "wait", f"stack-{state}-complete", *self.stack)

    def create_change_set(self, name: str, kept: Iterable[str], fresh: Iterable[str]) -> str:
        """Show what a new template would change; the customer's choices stay."""
        return self._call(
            "cloudformation", "create-change-set", *self.stack, "--change-set-name", name,
            *self.template, *_RIGHTS, *_write_values(kept, fresh),
        )  # fmt: skip

    def wait_for_change_set(self, name: str) -> str:
        """Wait until the changes are known."""
        return self._call(
            "cloudformation", "wait", "change-set-create-complete", *self.stack,
            "--change-set-name", name,
        )  # fmt: skip

    def describe_change_set(self, name: str) -> str:
        """Print the changes in a change set."""
        query = "Changes[].ResourceChange.[Action,LogicalResourceId,Replacement]"
        return self._call(
            "cloudformation", "describe-change-set", *self.stack, "--change-set-name", name,
            "--query", query, "--output", "text",
        )  # fmt: skip

    def execute_change_set(self, name: str) -> str:
        """Apply a change set."""
        names = ("--change-set-name", name)
        return self._call("cloudformation", "execute-change-set", *self.stack, *names)

    def change(self, values: Mapping[str, Word]) -> str:
        """Return the update that sets some parameters; everything else stays.

        What else there is, the running stack is asked, so that the command fits any version of it.
        """
        return self._call(
            "cloudformation", "update-stack", *self.stack, "--use-previous-template", *_RIGHTS,
            "--parameters", *(_write_value(name, value) for name, value in values.items()),
            self._list_others(values),
        )  # fmt: skip

    def delete(self) -> str:
        """Delete the stack."""
        return self._call("cloudformation", "delete-stack", *self.stack)

    def delete_seal(self) -> str:
        """Delete the seal, which outlives the stack."""
        install, query = self.model.install_id, "SecretList[0].ARN"
        filters = (f"Key=tag-value,Values={install}", "Key=description,Values=Seals")
        find = (
            *("aws", "secretsmanager", "list-secrets", *self.region),
            *("--filters", *filters, "--query", query, "--output", "text"),
        )
        argv = ("aws", "secretsmanager", "delete-secret", *self.region, "--secret-id")
        return write_command(*argv, Inner(find))

    def list_machines(self) -> str:
        """Print the machines of the runner."""
        group = f"{write_prefix(self.model)}-runner"
        return self._call(
            "autoscaling", "describe-auto-scaling-groups", "--auto-scaling-group-names", group,
            "--query", "AutoScalingGroups[0].Instances[].InstanceId", "--output", "text",
        )  # fmt: skip

    def simulate_roles(self) -> tuple[str, ...]:
        """Print whether each role may do anything: `explicitDeny` while the Stack is stopped."""
        return tuple(
            write_command(
                *("aws", "iam", "simulate-principal-policy", *self.region),
                "--policy-source-arn",
                Inner(self._find_role(write_role_name(role))),
                *("--action-names", "ec2:DescribeInstances", "s3:ListAllMyBuckets"),
                *("--query", "EvaluationResults[].EvalDecision", "--output", "text"),
            )
            for role in self.model.roles
            if role.enabled
        )

    def list_tagged(self) -> str:
        """Print everything in the region that has the tag of this install."""
        return self._call(
            "resourcegroupstaggingapi", "get-resources",
            "--tag-filters", f"Key=exclave:install,Values={self.model.install_id}",
            "--query", "ResourceTagMappingList[].ResourceARN", "--output", "text",
        )  # fmt: skip

    def list_roles(self) -> str:
        """Print the roles in the account that are named like those of this install."""
        starts = (write_prefix(self.model), self.model.install_id)
        names = (write_role_name(role) for role in self.model.roles)
        checks = (
            *(f'starts_with(RoleName, `"{start}"`)' for start in starts),
            *(f'RoleName==`"{name}"`' for name in names if not name.startswith(starts)),
        )
        query = ("--query", f"Roles[?{' || '.join(checks)}].RoleName", "--output", "text")
        return self._call("iam", "list-roles", *query)

    def _find_role(self, name: str) -> tuple[str, ...]:
        """Return the command that prints the ARN of a role.

        It has the region since each partition of AWS has roles of its own.
        """
        return (
            *("aws", "iam", "get-role", *self.region, "--role-name", name),
            *("--query", "Role.Arn", "--output", "text"),
        )

    def _list_others(self, names: Iterable[str]) -> Inner:
        """Return the values that keep all other parameters of the stack as they are."""
        others = " && ".join(f'ParameterKey!=`"{name}"`' for name in names)
        value = 'join(`""`, [`"ParameterKey="`, ParameterKey, `",UsePreviousValue=true"`])'
        query = ("--query", f"Stacks[0].Parameters[?{others}].{value}", "--output", "text")
        find = ("aws", "cloudformation", "describe-stacks", *self.region, *self.stack, *query)
        return Inner(find, is_list=True)

    def _call(self, service: str, operation: str, *words: Word) -> str:
        return write_command("aws", service, operation, *self.region, *words)


def build_upload_url(model: StackModel) -> str:
    """Return the address of a template in the customer's bucket."""
    region = model.account.region
    host = name_service("s3", region) if region else "s3.amazonaws.com"
    return f"https://{name_bucket(model)}.{host}/{TEMPLATE}"


def name_bucket(model: StackModel) -> str:
    """Return the name of the bucket that holds a template while it is applied."""
    return f"{write_prefix(model)}-template".lower().replace("_", "-")


def _write_value(name: str, value: Word) -> Word:
    start = f"ParameterKey={name},ParameterValue="
    return Inner(value.argv, start) if isinstance(value, Inner) else start + value


def _write_values(kept: Iterable[str], fresh: Iterable[str]) -> tuple[str, ...]:
    values = (
        *(f"ParameterKey={name},UsePreviousValue=true" for name in kept),
        *(f"ParameterKey={name},ParameterValue=" for name in fresh),
    )
    return ("--parameters", *values) if values else ()
