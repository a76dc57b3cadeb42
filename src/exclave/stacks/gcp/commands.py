"""Commands of Terraform and of the Google Cloud CLI that a customer pastes, from argv as data."""

from collections.abc import Iterator, Sequence
from typing import Final

from exclave.domain.runner_principals import name_gcp_account
from exclave.stacks.gcp.module import Form
from exclave.stacks.gcp.names import (
    RUNNER,
    list_labels,
    write_account_email,
    write_prefix,
    write_secret_id,
)
from exclave.stacks.gcp.registry import has_registry
from exclave.stacks.gcp.secrets import SEAL
from exclave.stacks.model import StackModel
from exclave.stacks.shell import Word, write_command

VALUES: Final = "values.tfvars"
EXAMPLE: Final = "values.example.tfvars"
"""What the values file begins as; a newer module does not overwrite what the customer wrote."""
UNKNOWN_PROJECT: Final = "PROJECT_ID"
"""What stands for the project where the vendor does not know it."""
INSTALLER: Final = "exclave-installer"
INSTALLER_ROLES: Final = (
    "roles/compute.instanceAdmin.v1",
    "roles/compute.networkAdmin",
    "roles/compute.securityAdmin",
    "roles/config.agent",
    "roles/iam.roleAdmin",
    "roles/iam.serviceAccountAdmin",
    "roles/iam.serviceAccountUser",
    "roles/resourcemanager.projectIamAdmin",
    "roles/secretmanager.admin",
    "roles/serviceusage.serviceUsageAdmin",
)
"""What the account needs that applies the module for Infrastructure Manager."""
_REGISTRY_ROLE: Final = "roles/artifactregistry.admin"
_FOLDER: Final = f"-chdir={Form.TERRAFORM}"
_VAR_FILE: Final = f"-var-file={VALUES}"


class ModuleCommands:
    """The commands of one Stack; the folders of both forms are beside them."""

    def __init__(self, model: StackModel) -> None:
        self.model = model
        self.project = model.account.id or UNKNOWN_PROJECT
        self.region = model.account.region or "REGION"
        self.prefix = write_prefix(model)
        self.group = f"{self.prefix}-runner"

    def apply(self, *values: Word) -> str:
        """Apply the module with the customer's values, and others for once."""
        return write_command("terraform", _FOLDER, "apply", _VAR_FILE, *values)

    def prepare_values(self, form: Form) -> str:
        """Begin a file for the customer's values."""
        return write_command("cp", "-n", f"{form}/{EXAMPLE}", f"{form}/{VALUES}")

    def create(self) -> Iterator[str]:
        """Sign in, and apply the module for the first time."""
        yield write_command("gcloud", "auth", "application-default", "login")
        yield from self.update()

    def update(self) -> Iterator[str]:
        """Apply a newer module."""
        yield write_command("terraform", _FOLDER, "init")
        yield self.apply()

    def create_installer(self) -> Iterator[str]:
        """Make the account with which Infrastructure Manager applies the module."""
        yield self._call("services", "enable", "config.googleapis.com", "iam.googleapis.com")
        yield self._call("iam", "service-accounts", "create", INSTALLER)
        more = (_REGISTRY_ROLE,) if has_registry(self.model) else ()
        for role in (*INSTALLER_ROLES, *more):
            member = ("--member", f"serviceAccount:{self._installer}", "--role", role)
            yield write_command(
                "gcloud", "projects", "add-iam-policy-binding", self.project, *member,
                "--condition", "None",
            )  # fmt: skip

    def deploy(self) -> str:
        """Apply the module by Infrastructure Manager."""
        account = f"projects/{self.project}/serviceAccounts/{self._installer}"
        folder = str(Form.INFRASTRUCTURE_MANAGER)
        return self._call(
            "infra-manager", "deployments", "apply", self._deployment,
            "--service-account", account, "--local-source", folder,
            "--inputs-file", f"{folder}/{VALUES}",
        )  # fmt: skip

    def remove_deployment(self) -> str:
        """Delete what Infrastructure Manager made."""
        return self._call("infra-manager", "deployments", "delete", self._deployment)

    def add_value(self, secret: str) -> str:
        """Store the value of a secret, which is in a file."""
        name = write_secret_id(self.model, secret)
        return self._call("secrets", "versions", "add", name, "--data-file", "value")

    def stop_at_once(self) -> Iterator[str]:
        """Disable all accounts and stop the machine, without Terraform."""
        for email in self._list_emails():
            yield self._call("iam", "service-accounts", "disable", email)
        yield self._call(
            "compute", "instance-groups", "managed", "resize", self.group,
            "--region", self.region, "--size", "0",
        )  # fmt: skip

    def list_machines(self) -> str:
        """Print the machines of the runner."""
        return self._call(
            "compute", "instance-groups", "managed", "list-instances", self.group,
            "--region", self.region, "--format", "value(instance)",
        )  # fmt: skip

    def list_accounts(self, *, enabled_only: bool = False) -> str:
        """Print the service accounts of the Stack."""
        start = name_gcp_account(self.model.install_id, "")
        accounts = f"email~^{start}"
        if enabled_only:
            accounts += f" AND NOT disabled=true AND NOT email~^{start}nodes@"
        return self._call(
            "iam", "service-accounts", "list", "--filter", accounts, "--format", "value(email)"
        )

    def list_secrets(self) -> str:
        """Print the secrets of the Stack."""
        ((label, value),) = list_labels(self.model).items()
        chosen = ("--filter", f"labels.{label}={value}", "--format", "value(name)")
        return self._call("secrets", "list", *chosen)

    def list_groups(self) -> str:
        """Print the groups of machines of the Stack."""
        chosen = ("--filter", f"name~^{self.prefix}", "--format", "value(name)")
        return self._call("compute", "instance-groups", "managed", "list", *chosen)

    def destroy(self) -> Iterator[str]:
        """Forget the seal, so that it stays, and remove everything else."""
        yield write_command(
            "terraform", _FOLDER, "state", "rm", f"google_secret_manager_secret.{SEAL}"
        )
        yield write_command("terraform", _FOLDER, "destroy", _VAR_FILE)

    def delete_seal(self) -> str:
        """Delete the seal, which outlives the Stack."""
        return self._call("secrets", "delete", write_secret_id(self.model, SEAL))

    @property
    def _installer(self) -> str:
        return f"{INSTALLER}@{self.project}.iam.gserviceaccount.com"

    @property
    def _deployment(self) -> str:
        return f"projects/{self.project}/locations/{self.region}/deployments/{self.prefix}"

    def _list_emails(self) -> Iterator[str]:
        runner = name_gcp_account(self.model.install_id, RUNNER)
        yield f"{runner}@{self.project}.iam.gserviceaccount.com"
        for role in self.model.roles:
            yield write_account_email(self.model, role, self.project)

    def _call(self, *words: str) -> str:
        return write_command("gcloud", *words, "--project", self.project)


def list_values(names: Sequence[str]) -> tuple[str, ...]:
    """Return commands that ask for values of secrets and show nothing."""
    return tuple(f"read -rs TF_VAR_{name} && export TF_VAR_{name}" for name in names)
