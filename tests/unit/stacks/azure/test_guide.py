"""The commands that a customer pastes exist, and keep what the customer chose."""

import shlex
from dataclasses import replace
from urllib.parse import unquote

import pytest

from exclave.stacks.azure.stack import AzureStack
from exclave.stacks.base import Guide, StackAddress
from exclave.stacks.model import SecretModel, StackModel
from tests.support.azure_stacks import FULL, INSTALL, VARIANTS, make_model
from tests.support.emulated_azure.deployment import SUBSCRIPTION

ADDRESS = StackAddress("https://runners.vendor.example", "xcv_1")
COMMANDS = {
    "group create": {"--name", "--location"},
    "deployment group what-if": {"--resource-group", "--template-file", "--parameters"},
    "deployment sub what-if": {"--location", "--template-file", "--parameters"},
    "stack group create": {
        "--name", "--resource-group", "--template-file", "--parameters", "--action-on-unmanage",
        "--deny-settings-mode", "--yes",
    },
    "stack sub create": {
        "--name", "--location", "--template-file", "--parameters", "--action-on-unmanage",
        "--deny-settings-mode", "--yes",
    },
    "stack group delete": {"--name", "--resource-group", "--action-on-unmanage", "--yes"},
    "stack sub delete": {"--name", "--action-on-unmanage", "--yes"},
    "vmss scale": {"--name", "--resource-group", "--new-capacity"},
    "vmss list-instances": {"--name", "--resource-group", "--query", "--output"},
    "vmss reimage": {"--name", "--resource-group"},
    "identity show": {"--name", "--resource-group", "--query", "--output"},
    "role assignment list": {"--all", "--assignee", "--query", "--output"},
    "resource list": {"--tag", "--query", "--output"},
    "keyvault list-deleted": {"--query", "--output"},
}  # fmt: skip
"""The commands of `az` that are used, with all options that each has to have, and no others."""
VALUES = {"--action-on-unmanage": {"deleteResources"}, "--deny-settings-mode": {"none"}}
FLAGS = {"--yes", "--all"}
MANY = {"--parameters"}


def write_guide(model: StackModel, before: StackModel | None = None) -> Guide:
    return AzureStack().write_guide(model, ADDRESS, before)


def find_step(guide: Guide, title: str) -> tuple[str, ...]:
    return next(step.commands for step in guide.steps if step.title == title)


def list_calls(command: str) -> list[list[str]]:
    """Return a command, and the command within it, as words."""
    outer, mark, rest = command.partition('"$(')
    inner, _, end = rest.partition(')"')
    return [
        shlex.split(f"{outer} x {end}" if mark else outer),
        *([shlex.split(inner)] if mark else []),
    ]


def check_call(words: list[str], model: StackModel) -> None:
    first = next(index for index, word in enumerate(words) if word.startswith("--"))
    known = COMMANDS[" ".join(words[1:first])] | {"--subscription"}
    options: dict[str, list[str]] = {}
    for word in words[first:]:
        if word.startswith("--"):
            assert word not in options
            options[word] = []
        else:
            options[list(options)[-1]].append(word)
    assert set(options) == known - ({"--subscription"} if not model.account.id else set())
    for name, values in options.items():
        assert len(values) == (0 if name in FLAGS else 1) or name in MANY, name
        assert set(values) <= VALUES.get(name, set(values))


def test_break_glass_ends_by_itself_and_on_request() -> None:
    guide = write_guide(make_model())

    (begin,) = find_step(guide, "Switch on the break-glass role Emergency")
    (end,) = find_step(guide, "End break-glass")

    assert "enableBreakGlassAdmin=true" in shlex.split(begin)
    assert '"breakGlassUntil=$(date -u -d ' in begin
    assert not [word for word in shlex.split(end) if word.startswith(("enable", "breakGlass"))]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_command_is_one_of_the_azure_command_line(variant: str) -> None:
    model = VARIANTS[variant]
    older = replace(model, secrets=())

    for guide in (write_guide(model), write_guide(model, older)):
        for step in guide.steps:
            for command in step.commands:
                if command.startswith("az "):
                    for words in list_calls(command):
                        check_call(words, model)


def test_a_stop_ends_the_machine_and_then_takes_the_rights_away() -> None:
    scale, apply = find_step(write_guide(FULL), "Stop everything")

    assert scale.endswith(f"--new-capacity 0 --subscription {SUBSCRIPTION}")
    words = shlex.split(apply)
    at = words.index("--parameters")
    assert words[at + 1 : at + 3] == ["@azuredeploy.parameters.json", "runnerEnabled=false"]


def test_the_rights_of_every_identity_are_verified() -> None:
    _, *rights = find_step(write_guide(FULL), "Verify that it is stopped")

    assert len(rights) == 1 + len(FULL.roles)
    assert f"exclave-{INSTALL}-runner" in rights[0]


def test_an_update_asks_for_new_values_only() -> None:
    after = replace(FULL, secrets=(*FULL.secrets, SecretModel("license", required=True)))

    step = next(s for s in write_guide(after, FULL).steps if s.title == "Update the stack")

    assert "Add values for licenseSecret to it." in step.text
    assert "what-if" in step.commands[0]


def test_an_unchanged_model_needs_no_update() -> None:
    assert find_step(write_guide(make_model(), make_model()), "Update the stack") == ()


def test_the_portal_is_linked_where_it_can_fetch_the_template() -> None:
    (link,) = next(step.links for step in write_guide(FULL).steps if step.links)
    inside = AzureStack().write_guide(FULL, replace(ADDRESS, runner_url="http://10.0.0.1"), None)

    assert link.url.startswith(
        "https://portal.azure.com/#create/Microsoft.Template/uri/https%3A%2F%2F"
    )
    assert unquote(link.url).endswith("/v1/stacks/xcv_1/azure.json")
    assert not [step for step in inside.steps if step.links]


def test_files_in_a_folder_need_no_fetching() -> None:
    steps = AzureStack().write_guide(FULL, None, None).steps

    assert not [step for step in steps if step.title == "Fetch the files" or step.links]
