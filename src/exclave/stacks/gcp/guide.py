"""How a customer runs a Stack in Google Cloud, from the first apply to removal."""

import shlex
from collections.abc import Iterator
from typing import Final

from exclave.stacks.base import Guide, StackAddress, Step
from exclave.stacks.break_glass import in_four_hours, list_break_glass_steps
from exclave.stacks.digest import digest_model
from exclave.stacks.gcp.commands import (
    INSTALLER,
    UNKNOWN_PROJECT,
    VALUES,
    ModuleCommands,
    list_values,
)
from exclave.stacks.gcp.module import Form
from exclave.stacks.gcp.names import name_input, name_secret
from exclave.stacks.gcp.variables import list_variables, name_switch
from exclave.stacks.model import RoleModel, StackModel

ARCHIVES: Final = {
    Form.TERRAFORM: "gcp.zip",
    Form.INFRASTRUCTURE_MANAGER: "infrastructure-manager.zip",
}
_PREPARE: Final = (
    f"Write your values into `{VALUES}`: it begins with the variables without a default. Others"
    " are in `variables.tf.json`. Terraform keeps a state, which holds no secret: keep it, for"
    " example by a backend in a bucket of yours."
)
_SECRETS: Final = (
    "Some commands ask for secrets; nothing is shown or stored. One that you leave out stays as it"
    " is. To store another value later, raise `…_version` beside it."
)
_MANAGED: Final = (
    "Infrastructure Manager applies the module with an account that you make once. It keeps the"
    " values of variables, so secrets are none: put each into a file and add it with the last"
    " commands."
)
_STOP: Final = (
    "Every account of the Stack is disabled, which also ends tokens that were issued before, and"
    " the machine is deleted. Everything that the app made stays. Write it into"
    f" `{VALUES}` as well, or the next apply starts it again."
)


def write_guide(
    model: StackModel, address: StackAddress | None, before: StackModel | None
) -> Guide:
    """Return the steps with commands of Terraform and of the Google Cloud CLI."""
    unknown = not model.account.is_known
    return Guide(
        summary=(
            "Apply one Terraform module in the project where the app is to run: with Terraform, or"
            " with Infrastructure Manager. It holds no secret; read it first."
            + (f" {UNKNOWN_PROJECT} stands for the id of your project." if unknown else "")
        ),
        steps=(
            *_list_fetching(address),
            *([_update(model, before)] if before is not None else _list_creation(model)),
            *_list_switches(before or model),
            *_list_break_glass(before or model),
            *_list_removal(before or model),
        ),
    )


def _list_fetching(address: StackAddress | None) -> Iterator[Step]:
    if address is None:
        return
    yield Step(
        title="Fetch the module",
        text="The second archive is for Infrastructure Manager.",
        commands=tuple(
            f"curl -fsS {shlex.quote(address.build_url(file))} -o {file}"
            f" && unzip -o {file} -d {form}"
            for form, file in ARCHIVES.items()
        ),
    )


def _list_creation(model: StackModel) -> Iterator[Step]:
    commands = ModuleCommands(model)
    secrets = [item.name for item in list_variables(model) if item.is_secret]
    asked = f" {_SECRETS}" if secrets else ""
    prepare = commands.prepare_values(Form.TERRAFORM)
    lines = (prepare, *list_values(secrets), *commands.create())
    yield Step("Apply it with Terraform", f"{_PREPARE}{asked}", lines)
    yield Step(
        "Or apply it with Infrastructure Manager",
        _MANAGED if secrets else _MANAGED.partition(" It keeps")[0],
        (
            commands.prepare_values(Form.INFRASTRUCTURE_MANAGER),
            *commands.create_installer(),
            commands.deploy(),
            *(commands.add_value(name) for name in _list_places(model)),
        ),
    )


def _list_places(model: StackModel) -> Iterator[str]:
    """Yield the secrets that the customer gives a value."""
    yield from (name_secret(item) for item in model.secrets if not item.auto_generate)
    yield from (name_input(item) for item in model.inputs if item.sensitive)


def _update(model: StackModel, before: StackModel) -> Step:
    """Return the update from the model that the customer runs."""
    if digest_model(model) == digest_model(before):
        return Step("Update the Stack", "There is nothing to do: this version runs already.")
    commands = ModuleCommands(model)
    old = {item.name for item in list_variables(before)}
    new = [item for item in list_variables(model) if item.name not in old]
    required = [f"`{item.name}`" for item in new if item.default is None]
    asked = f" Add {', '.join(required)} to `{VALUES}`." if required else ""
    secrets = [item.name for item in new if item.is_secret]
    return Step(
        "Update the Stack",
        f"Put the new files in the place of the old ones; your `{VALUES}` and the state stay."
        f" Terraform shows what would change before anything does.{asked} The last command does the"
        " same with Infrastructure Manager.",
        (*list_values(secrets), *commands.update(), commands.deploy()),
    )


def _list_switches(running: StackModel) -> Iterator[Step]:
    commands = ModuleCommands(running)
    yield Step("Stop everything", _STOP, (commands.apply("-var=runner_enabled=false"),))
    yield Step(
        "Stop everything without Terraform",
        "The same at once, by whoever may manage service accounts and machines. The next apply"
        " starts it again.",
        tuple(commands.stop_at_once()),
    )
    yield Step(
        "Verify that it is stopped",
        "Both commands print nothing.",
        (commands.list_machines(), commands.list_accounts(enabled_only=True)),
    )
    yield Step("Start again", commands=(commands.apply("-var=runner_enabled=true"),))


def _list_break_glass(running: StackModel) -> Iterator[Step]:
    commands = ModuleCommands(running)

    def allow(role: RoleModel) -> tuple[str, ...]:
        end = in_four_hours("-var=break_glass_until=")
        return (commands.apply(f"-var={name_switch(role)}=true", end),)

    after = (
        "Without this, the roles end at that time, but their accounts stay on. Any other apply with"
        " your values ends break-glass as well."
    )
    yield from list_break_glass_steps(running, allow, (commands.apply(),), after)


def _list_removal(model: StackModel) -> Iterator[Step]:
    commands = ModuleCommands(model)
    yield Step(
        "Remove the Stack",
        "Have the vendor deprovision the install first: what the app made is removed by its runner."
        " The seal stays, since backups of the app's state cannot be read without it; the last"
        " command deletes it for ever.",
        (*commands.destroy(), commands.delete_seal()),
    )
    yield Step(
        "Or remove it with Infrastructure Manager",
        "It removes the seal too: write `keep_seal = false` into the values and apply once more"
        f" first. The account `{INSTALLER}` is yours to delete.",
        (commands.deploy(), commands.remove_deployment()),
    )
    yield Step(
        "Verify that nothing is left",
        "The first command prints the seal until that is deleted; the others nothing.",
        (commands.list_secrets(), commands.list_accounts(), commands.list_groups()),
    )
