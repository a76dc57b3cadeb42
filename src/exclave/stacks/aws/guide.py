"""How a customer runs a Stack in AWS through its whole life, from the first apply to removal."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from exclave.domain.stacks import RoleKind
from exclave.stacks.aws.cloudformation.template import (
    BODY_BYTES,
    build_template,
    write_template,
)
from exclave.stacks.aws.commands import (
    PARAMETERS,
    TEMPLATE,
    StackCommands,
    build_upload_url,
)
from exclave.stacks.aws.nested import plan_nested
from exclave.stacks.aws.parameters import BREAK_GLASS_END, SWITCH, list_parameters
from exclave.stacks.aws.resources import name_switch
from exclave.stacks.base import Guide, Link, StackAddress, Step
from exclave.stacks.break_glass import PAST, in_four_hours, list_break_glass_steps
from exclave.stacks.digest import digest_model
from exclave.stacks.model import RoleModel, StackModel
from exclave.stacks.shell import Word

MOST_FRESH = 8
"""How many characters of the digest name a change set."""
_PREPARE = (
    f"Write your values into {PARAMETERS}: it lists the parameters without a default."
    " Add others of the template if you want to choose them too."
)
_NO_VALUES = (
    f"All parameters have defaults. If you want to choose others, add them to {PARAMETERS}."
)
_STOP = (
    "The machine is stopped, and every role loses all rights at once, sessions of running jobs"
    " included. Everything that the app made stays."
)


def write_guide(
    model: StackModel, address: StackAddress | None, before: StackModel | None
) -> Guide:
    """Return the steps with commands of the AWS command line."""
    return Guide(
        summary=(
            "Create one CloudFormation stack, or apply the Terraform module, in the account where"
            " the app is to run. Neither holds a secret; read them first."
        ),
        steps=(
            *_list_fetching(model, address),
            *(
                [_update(model, before, address)]
                if before is not None
                else _list_creation(model, address)
            ),
            *_list_switches(before or model),
            *_list_break_glass(before or model),
            *_list_removal(model),
        ),
    )


def write_console_link(model: StackModel, template_url: str, code: str = "") -> Link:
    """Return the form of the console that creates the stack of a template in a bucket."""
    region = model.account.region
    facts = {"templateURL": template_url, "stackName": model.stack_name}
    if code and not model.account.is_known:
        facts["param_EnrolmentCode"] = code
    place = f"https://{region}.console.aws.amazon.com/cloudformation/home?region={region}"
    return Link(
        "Create the stack in the console", f"{place}#/stacks/create/review?{urlencode(facts)}"
    )


def list_names(model: StackModel) -> tuple[str, ...]:
    """List the parameters of the template, the vendor's own templates included."""
    nested = (name for plan in plan_nested(model) for name in plan.declared)
    return (*(parameter.name for parameter in list_parameters(model)), *nested)


def _list_fetching(model: StackModel, address: StackAddress | None) -> Iterator[Step]:
    if address is None:
        return
    text = write_template(build_template(model))
    yield Step(
        title="Fetch the files",
        text=f"{TEMPLATE} has {len(text.encode())} bytes.",
        commands=tuple(
            f"curl -fsS {shlex.quote(address.build_url(name))} -o {name}"
            for name in (TEMPLATE, PARAMETERS)
        ),
    )


@dataclass(frozen=True, slots=True)
class _TemplatePlace:
    """Where CloudFormation reads the template, and what makes and removes that place."""

    url: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def _find_template(model: StackModel, address: StackAddress | None) -> _TemplatePlace:
    """Return where the template is: sent along if it is small, else in a bucket."""
    if address is not None and address.template_url:
        return _TemplatePlace(address.template_url)
    if len(write_template(build_template(model)).encode()) <= BODY_BYTES:
        return _TemplatePlace()
    commands = StackCommands(model)
    return _TemplatePlace(build_upload_url(model), commands.upload(), (commands.remove_upload(),))


def _list_creation(model: StackModel, address: StackAddress | None) -> Iterator[Step]:
    place = _find_template(model, address)
    commands = StackCommands(model, place.url)
    if address is not None and address.template_url:
        yield Step(
            "Create the stack in the console",
            "Sign in to the account first. The form shows all parameters; fill in those that are"
            " empty, and create the stack. Or use the commands of the next step.",
            links=(write_console_link(model, address.template_url),),
        )
    lines = (*place.before, commands.create(), commands.wait("create"), *place.after)
    asks = any(item.default is None for item in list_parameters(model))
    yield Step("Create the stack", _PREPARE if asks else _NO_VALUES, lines)
    yield Step(
        "Or apply the Terraform module",
        "Call the module in `terraform` from a configuration of yours, which names the provider,"
        " the region and your values; its state is yours and holds no secret.",
        ("terraform init", "terraform apply"),
    )


def _update(model: StackModel, before: StackModel, address: StackAddress | None) -> Step:
    """Return the update from the model that the customer runs, with all their choices kept."""
    if digest_model(model) == digest_model(before):
        return Step("Update the stack", "There is nothing to do: this version runs already.")
    place, old, new = _find_template(model, address), list_names(before), list_names(model)
    commands = StackCommands(model, place.url)
    required = {item.name for item in list_parameters(model) if item.default is None}
    fresh = [name for name in new if name not in old and name in required]
    name = f"exclave-{digest_model(model)[:MOST_FRESH]}"
    asked = f" Fill in the values of {', '.join(fresh)}." if fresh else ""
    return Step(
        "Update the stack",
        f"The change set shows what would change before anything does.{asked}",
        (
            *place.before,
            commands.create_change_set(name, [item for item in new if item in old], fresh),
            commands.wait_for_change_set(name),
            commands.describe_change_set(name),
            commands.execute_change_set(name),
            commands.wait("update"),
            *place.after,
        ),
    )


def _list_switches(running: StackModel) -> Iterator[Step]:
    commands = StackCommands(running)
    stop, start = (commands.change({SWITCH: value}) for value in ("false", "true"))
    yield Step("Stop everything", _STOP, (stop, commands.wait("update")))
    simulated = commands.simulate_roles()
    yield Step(
        "Verify that it is stopped",
        "The first command prints nothing, the others print `explicitDeny`."
        if simulated
        else "The command prints nothing.",
        (commands.list_machines(), *simulated),
    )
    yield Step("Start again", commands=(start, commands.wait("update")))


def _list_break_glass(running: StackModel) -> Iterator[Step]:
    commands = StackCommands(running)
    wait = commands.wait("update")

    def allow(role: RoleModel) -> tuple[str, ...]:
        values: dict[str, Word] = {name_switch(role): "true", BREAK_GLASS_END: in_four_hours()}
        return commands.change(values), wait

    switches = (name_switch(role) for role in running.list_roles(RoleKind.BREAK_GLASS))
    off = commands.change({**dict.fromkeys(switches, "false"), BREAK_GLASS_END: PAST})
    after = (
        "Without this, nobody can take the roles on after that time, but they stay in the account."
    )
    yield from list_break_glass_steps(running, allow, (off, wait), after)


def _list_removal(model: StackModel) -> Iterator[Step]:
    commands = StackCommands(model)
    yield Step(
        "Remove the Stack",
        "Have the vendor deprovision the install first: what the app made is removed by its runner."
        " The seal stays, since backups of the app's state cannot be read without it; the last"
        " command deletes it after 30 days.",
        (commands.delete(), commands.wait("delete"), commands.delete_seal()),
    )
    yield Step(
        "Verify that nothing is left",
        "The first command prints the seal until that is deleted, and machines for an hour after"
        " their end; the second one nothing.",
        (commands.list_tagged(), commands.list_roles()),
    )
