"""Commands of the Azure command line that a customer pastes, from argv that is data."""

from exclave.stacks.azure.names import TAG
from exclave.stacks.azure.parameters import is_subscription
from exclave.stacks.azure.references import Resource
from exclave.stacks.azure.resources import list_identities, name_machine
from exclave.stacks.model import StackModel
from exclave.stacks.naming import fit_name
from exclave.stacks.shell import Inner, Word, write_command

TEMPLATE = "azuredeploy.json"
PARAMETERS = "azuredeploy.parameters.json"
BICEP = "exclave.bicep"
_STACK_NAME = 90
_TEXT = ("--output", "tsv")
_UNMANAGED = ("--action-on-unmanage", "deleteResources")


def name_group(model: StackModel) -> str:
    """Return the resource group that the commands name; the customer may choose another one."""
    if is_subscription(model):
        return fit_name(f"exclave-{model.install_id}", _STACK_NAME)
    return fit_name(model.stack_name, _STACK_NAME)


class StackCommands:
    """The commands of one Stack: a deployment stack, which removes what is not wanted any more."""

    def __init__(self, model: StackModel) -> None:
        self.model = model
        self.name = ("--name", fit_name(model.stack_name, _STACK_NAME))
        self.group = ("--resource-group", name_group(model))
        self.is_subscription = is_subscription(model)
        region = model.account.region
        self.location = ("--location", region or "LOCATION")
        account = model.account.id
        self.subscription = ("--subscription", account) if account else ()

    def create_group(self) -> tuple[str, ...]:
        """Create the resource group, unless the template does it."""
        if self.is_subscription:
            return ()
        name = ("--name", self.group[1])
        return (self._call("group", "create", *name, *self.location),)

    def preview(self) -> str:
        """Print what applying the template would change."""
        scope, place = ("sub", self.location) if self.is_subscription else ("group", self.group)
        return self._call("deployment", scope, "what-if", *place, *_list_files())

    def apply(self, *values: Word, template: str = TEMPLATE) -> str:
        """Create or update the stack, with the values of the parameter file and those given."""
        scope, place = ("sub", self.location) if self.is_subscription else ("group", self.group)
        return self._call(
            "stack", scope, "create", *self.name, *place, *_list_files(template), *values,
            *_UNMANAGED, "--deny-settings-mode", "none", "--yes",
        )  # fmt: skip

    def scale(self, count: int) -> str:
        """Stop the machine, or start it."""
        machine = self._of_machine()
        return self._call("vmss", "scale", *self.group, *machine, "--new-capacity", str(count))

    def replace_machine(self) -> str:
        """Reset the machine to a fresh disk and the newest image."""
        return self._call("vmss", "reimage", *self.group, *self._of_machine())

    def list_machines(self) -> str:
        """Print the machines of the runner."""
        machine = self._of_machine()
        query = ("--query", "[].instanceId", *_TEXT)
        return self._call("vmss", "list-instances", *self.group, *machine, *query)

    def list_rights(self) -> tuple[str, ...]:
        """Print the rights of each identity."""
        return tuple(self._list_rights(identity) for identity in list_identities(self.model))

    def delete(self) -> str:
        """Delete the stack with everything that it made."""
        scope, place = ("sub", ()) if self.is_subscription else ("group", self.group)
        return self._call("stack", scope, "delete", *self.name, *place, *_UNMANAGED, "--yes")

    def list_tagged(self) -> str:
        """Print everything in the subscription that has the tag of this install."""
        tag = f"{TAG}={self.model.install_id}"
        return self._call("resource", "list", "--tag", tag, "--query", "[].id", *_TEXT)

    def list_deleted_vaults(self) -> str:
        """Print the vaults of this install that can still be recovered."""
        query = f"[?properties.tags.\"{TAG}\"=='{self.model.install_id}'].name"
        return self._call("keyvault", "list-deleted", "--query", query, *_TEXT)

    def _list_rights(self, identity: Resource) -> str:
        find = (
            *("az", "identity", "show", *self.subscription, *self.group),
            *("--name", self._name(identity), "--query", "principalId", *_TEXT),
        )
        return write_command(
            *("az", "role", "assignment", "list", *self.subscription, "--all"),
            *("--assignee", Inner(find), "--query", "[].roleDefinitionName", *_TEXT),
        )

    def _of_machine(self) -> tuple[str, str]:
        return ("--name", self._name(name_machine(self.model)))

    def _name(self, resource: Resource) -> str:
        return str(resource.title[0])

    def _call(self, *words: Word) -> str:
        return write_command("az", *words, *self.subscription)


def _list_files(template: str = TEMPLATE) -> tuple[str, ...]:
    return ("--template-file", template, "--parameters", f"@{PARAMETERS}")
