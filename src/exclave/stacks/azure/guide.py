"""How a customer runs a Stack in Azure through its whole life, from the first apply to removal."""

import shlex
from collections.abc import Iterator
from urllib.parse import quote

from exclave.stacks.azure.commands import (
    BICEP,
    PARAMETERS,
    TEMPLATE,
    StackCommands,
    name_group,
)
from exclave.stacks.azure.parameters import BREAK_GLASS_END, list_parameters, name_switch
from exclave.stacks.base import Guide, Link, StackAddress, Step
from exclave.stacks.break_glass import in_four_hours, list_break_glass_steps
from exclave.stacks.digest import digest_model
from exclave.stacks.model import RoleModel, StackModel

PORTAL = "https://portal.azure.com/#create/Microsoft.Template/uri/"
SERVED = "azure.json"
"""The name under which the template of every Stack in Azure is served."""
_PREPARE = (
    f"Write your values into {PARAMETERS}: it lists the parameters without a default. Add others of"
    " the template if you want to choose them too. Keep the file: Azure remembers no values, so"
    " every later command needs it. A value may be a reference to a secret in a vault of yours."
    " You need the right to assign roles, such as Owner."
)
_STOP = (
    "The first command ends the machine within a minute. The second one takes all rights of the"
    " runner and of the roles away, and keeps it so. Azure honours a token that was issued before"
    " until it notices, usually within minutes. Everything that the app made stays."
)


def write_guide(
    model: StackModel, address: StackAddress | None, before: StackModel | None
) -> Guide:
    """Return the steps with commands of the Azure command line."""
    return Guide(
        summary=(
            "Create one deployment stack from the template, or apply the Terraform module, in the"
            " subscription where the app is to run. Neither holds a secret; read them first."
        ),
        steps=(
            *_list_fetching(address),
            *([_update(model, before)] if before is not None else _list_creation(model, address)),
            *_list_switches(before or model),
            *_list_break_glass(before or model),
            *_list_removal(model),
        ),
    )


def write_portal_link(address: StackAddress) -> Link:
    """Return the form of the portal that deploys the template."""
    url = PORTAL + quote(address.build_url(SERVED), safe="")
    return Link("Deploy the template in the portal", url)


def _list_fetching(address: StackAddress | None) -> Iterator[Step]:
    if address is not None:
        commands = tuple(
            f"curl -fsS {shlex.quote(address.build_url(name))} -o {name}"
            for name in (TEMPLATE, PARAMETERS)
        )
        yield Step("Fetch the files", commands=commands)


def _list_creation(model: StackModel, address: StackAddress | None) -> Iterator[Step]:
    commands = StackCommands(model)
    yield Step(
        "Create the stack",
        f"{_PREPARE} The commands name the resource group `{name_group(model)}`; choose another one"
        " if you like.",
        (*commands.create_group(), commands.apply()),
    )
    yield Step(
        "Or from Bicep",
        f"{BICEP} has the parameters with their descriptions and includes {TEMPLATE}.",
        (commands.apply(template=BICEP),),
    )
    if address is not None and address.runner_url.startswith("https://"):
        yield Step(
            "Or in the portal",
            "Choose the subscription and the resource group, and fill in the form. A plain"
            " deployment removes nothing later: to take rights away or to remove the Stack, create"
            " the deployment stack over it with the command above.",
            links=(write_portal_link(address),),
        )
    yield Step(
        "Or apply the Terraform module",
        "Call the module in `terraform` from a configuration of yours, which configures the"
        " provider `azurerm` and gives your values; its state is yours and holds no secret. If the"
        " first run may not write a secret yet, run it again: new rights take minutes.",
        ("terraform init", "terraform apply"),
    )


def _update(model: StackModel, before: StackModel) -> Step:
    """Return the update from the model that the customer runs."""
    if digest_model(model) == digest_model(before):
        return Step("Update the stack", "There is nothing to do: this version runs already.")
    known = {item.name for item in list_parameters(before)}
    wanted = [item.name for item in list_parameters(model) if item.default is None]
    fresh = [name for name in wanted if name not in known]
    asked = f" Add values for {', '.join(fresh)} to it." if fresh else ""
    return Step(
        "Update the stack",
        f"Use your {PARAMETERS} of the first time.{asked} The first command shows what would"
        " change before anything does.",
        (StackCommands(model).preview(), StackCommands(model).apply()),
    )


def _list_switches(running: StackModel) -> Iterator[Step]:
    commands = StackCommands(running)
    stop = (commands.scale(0), commands.apply("runnerEnabled=false"))
    yield Step("Stop everything", _STOP, stop)
    yield Step(
        "Verify that it is stopped",
        "None of these commands prints anything.",
        (commands.list_machines(), *commands.list_rights()),
    )
    yield Step("Start again", commands=(commands.apply("runnerEnabled=true"),))
    yield Step(
        "Replace the machine",
        "If it is broken, or for the newest image of Ubuntu. The new one proves who it is by"
        " itself; work that runs is lost.",
        (commands.replace_machine(),),
    )


def _list_break_glass(running: StackModel) -> Iterator[Step]:
    commands = StackCommands(running)

    def allow(role: RoleModel) -> tuple[str, ...]:
        end = in_four_hours(f"{BREAK_GLASS_END}=")
        return (commands.apply(f"{name_switch(role)}=true", end),)

    after = (
        "Without this, the runner does not use the roles after that time, but they keep their"
        " rights. Any other update with your file ends break-glass as well."
    )
    yield from list_break_glass_steps(running, allow, (commands.apply(),), after)


def _list_removal(model: StackModel) -> Iterator[Step]:
    commands = StackCommands(model)
    yield Step(
        "Remove the Stack",
        "Have the vendor deprovision the install first: what the app made is removed by its runner."
        " The resource group stays.",
        (commands.delete(),),
    )
    yield Step(
        "Verify that nothing is left",
        "The first command prints nothing. The second one prints two vaults, which cannot be"
        " purged. That of the app's secrets can be recovered for 7 days, and for 90 that with the"
        " seal: backups of the app's state cannot be read without it.",
        (commands.list_tagged(), commands.list_deleted_vaults()),
    )
