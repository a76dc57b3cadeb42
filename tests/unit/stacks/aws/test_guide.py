"""The commands that a customer pastes exist, and keep what the customer chose."""

import shlex
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.session import get_session

from exclave.stacks.aws.commands import TEMPLATE
from exclave.stacks.aws.guide import write_console_link
from exclave.stacks.aws.stack import AwsStack
from exclave.stacks.base import Guide, StackAddress
from exclave.stacks.model import AccountPin, SecretModel, StackModel
from tests.support.aws_stacks import INSTALL, make_model
from tests.support.aws_variants import VARIANTS

ADDRESS = StackAddress("https://runners.vendor.example", "xcv_1")
OF_THE_COMMAND_LINE = {"s3": {"cp", "mb", "rb"}, "cloudformation": {"wait"}}
"""Commands that are no calls of an API."""
OF_ALL_COMMANDS = {"region", "query", "output"}


def write_guide(model: StackModel, before: StackModel | None = None) -> Guide:
    return AwsStack().write_guide(model, ADDRESS, before)


def list_commands(guide: Guide) -> list[list[str]]:
    return [shlex.split(command) for step in guide.steps for command in step.commands]


def find_step(guide: Guide, title: str) -> tuple[str, ...]:
    return next(step.commands for step in guide.steps if step.title == title)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_command_is_one_that_the_aws_command_line_has(variant: str) -> None:
    model, session = VARIANTS[variant], get_session()
    older = replace(model, secrets=())

    for guide in (write_guide(model), write_guide(model, older)):
        for words in list_commands(guide):
            if words[0] != "aws" or words[2] in OF_THE_COMMAND_LINE.get(words[1], ()):
                continue
            service = session.get_service_model(words[1])
            names = {name.lower(): name for name in service.operation_names}
            operation = service.operation_model(names[words[2].replace("-", "")])
            assert operation.input_shape is not None
            known = {name.lower() for name in operation.input_shape.members}
            options = {word[2:] for word in words if word.startswith("--")}
            for option in options - OF_ALL_COMMANDS:
                assert option.replace("-", "") in known, f"{words[2]} has no --{option}"


def test_a_stop_changes_one_parameter_and_keeps_those_that_the_stack_has() -> None:
    command, wait = find_step(write_guide(make_model()), "Stop everything")

    words = shlex.split(command)
    values = [word for word in words if word.startswith("ParameterKey=")]
    assert values == ["ParameterKey=RunnerEnabled,ParameterValue=false"]
    assert 'Parameters[?ParameterKey!=`"RunnerEnabled"`]' in command
    assert "--use-previous-template" in words
    assert "stack-update-complete" in wait


def test_a_change_set_is_executed_only_when_it_is_known() -> None:
    before = make_model()
    after = replace(before, secrets=(*before.secrets, SecretModel("license")))

    commands = find_step(write_guide(after, before), "Update the stack")

    words = [shlex.split(command)[2:6] for command in commands]
    assert [each[0] for each in words] == [
        "create-change-set", "wait", "describe-change-set", "execute-change-set", "wait",
    ]  # fmt: skip
    assert "change-set-create-complete" in words[1]


def test_break_glass_ends_by_itself_and_on_request() -> None:
    guide = write_guide(make_model())

    begin, _ = find_step(guide, "Switch on the break-glass role Emergency")
    end, _ = find_step(guide, "End break-glass")

    assert "ParameterKey=EnableBreakGlassAdminRole,ParameterValue=true" in begin
    assert '"ParameterKey=BreakGlassUntil,ParameterValue=$(date -u -d' in begin
    assert "ParameterKey=EnableBreakGlassAdminRole,ParameterValue=false" in end
    assert "ParameterKey=BreakGlassUntil,ParameterValue=2000-01-01T00:00:00Z" in end


def test_who_looks_for_what_is_left_looks_for_every_role() -> None:
    renamed = replace(make_model().roles[0], name="shop-admin")

    (_, command) = find_step(
        write_guide(make_model(roles=(renamed,))), "Verify that nothing is left"
    )

    assert 'RoleName==`"shop-admin"`' in command


def test_a_stack_that_asks_nothing_says_so_and_promises_no_further_output() -> None:
    guide = write_guide(make_model(roles=(), secrets=(), inputs=()))

    texts = {step.title: step.text for step in guide.steps}
    assert texts["Create the stack"].startswith("All parameters have defaults.")
    assert texts["Verify that it is stopped"] == "The command prints nothing."
    assert len(find_step(guide, "Verify that it is stopped")) == 1


def test_an_update_keeps_old_choices_and_asks_for_new_values_only() -> None:
    before = make_model()
    after = replace(before, secrets=(*before.secrets, SecretModel("license", required=True)))

    command = find_step(write_guide(after, before), "Update the stack")[0]

    assert "ParameterKey=DbPasswordSecret,UsePreviousValue=true" in command
    assert "ParameterKey=LicenseSecret,ParameterValue=" in shlex.split(command)


def test_an_update_names_no_parameter_that_is_gone() -> None:
    before = make_model()

    command = find_step(write_guide(replace(before, inputs=()), before), "Update the stack")[0]

    assert "InstallDomain" not in command


def test_an_unchanged_model_needs_no_update() -> None:
    assert find_step(write_guide(make_model(), make_model()), "Update the stack") == ()


def test_a_template_that_is_too_large_to_be_sent_goes_through_a_bucket() -> None:
    large = VARIANTS["large"]

    commands = find_step(write_guide(large), "Create the stack")

    bucket = f"exclave-{INSTALL.replace('_', '-')}-template"
    assert commands[0].endswith(f"s3://{bucket}")
    assert commands[1].endswith(f"{TEMPLATE} s3://{bucket}/")
    url = f"https://{bucket}.s3.eu-west-1.amazonaws.com/{TEMPLATE}"
    assert f"--template-url {url}" in commands[2]
    assert commands[-1].endswith("--force")


def test_an_update_to_a_large_template_goes_through_a_bucket_too() -> None:
    commands = find_step(write_guide(VARIANTS["large"], make_model()), "Update the stack")

    assert "s3 cp" in commands[1]
    assert "--template-url" in commands[2]


def test_a_published_template_is_one_link_and_is_not_sent_along() -> None:
    url = "https://templates.s3.eu-west-1.amazonaws.com/stacks/abc.json"
    guide = AwsStack().write_guide(VARIANTS["large"], replace(ADDRESS, template_url=url))

    (link,) = next(step.links for step in guide.steps if step.links)
    facts = parse_qs(urlsplit(link.url).fragment.partition("?")[2])
    assert facts["templateURL"] == [url]
    assert facts["stackName"] == [VARIANTS["large"].stack_name]
    assert f"--template-url {url}" in find_step(guide, "Create the stack")[0]


def test_nothing_is_linked_where_the_template_is_published_nowhere() -> None:
    guide = write_guide(make_model())

    assert [step.links for step in guide.steps if step.links] == []


def test_a_link_carries_the_code_only_where_the_account_is_not_known() -> None:
    url = "https://bucket.example/t.json"
    unknown = make_model(account=AccountPin("eu-west-1"))

    assert "param_EnrolmentCode=abc" in write_console_link(unknown, url, "abc").url
    assert "abc" not in write_console_link(make_model(), url, "abc").url
