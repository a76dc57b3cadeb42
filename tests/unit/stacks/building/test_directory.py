"""What is wrong with a Stack is known when its app is checked, with file and line."""

from pathlib import Path

from exclave.appconfig.diagnostics.codes import Severity
from exclave.stacks.building.directory import check_stack
from tests.unit.appconfig.directories import APPS, find, read

AWS = {"runner.toml": 'runner_type = "aws"\n'}
SECRETS = '[[secret]]\nname = "a_b"\n[[secret]]\nname = "a.b"\n'


def test_names_that_become_one_parameter_are_a_warning_of_the_directory(tmp_path: Path) -> None:
    checked = check_stack(read(tmp_path, {**AWS, "secrets.toml": SECRETS}))

    (finding,) = find(checked, "duplicate_name")
    assert checked.ok
    assert (finding.severity, finding.file, finding.line) == (Severity.WARNING, "secrets.toml", 4)


def test_a_template_that_cannot_be_part_of_a_stack_is_shown_at_its_line(tmp_path: Path) -> None:
    stack = 'name = "s"\ndescription = "s"\n[[custom_nested_stacks]]\nname = "x"\nindex = 1\ntemplate_url = "./x.yaml"\n'
    files = {**AWS, "stack.toml": stack, "x.yaml": "Resources:\n  A: !Nope x\n"}

    checked = check_stack(read(tmp_path, files))

    (finding,) = find(checked, "unknown_template")
    assert (finding.file, finding.line) == ("x.yaml", 2)
    assert checked.sources["x.yaml"].read_line(2) == "  A: !Nope x"


def test_an_app_without_a_cloud_or_with_errors_is_left_as_it_is(tmp_path: Path) -> None:
    local = read(tmp_path / "local", {"secrets.toml": SECRETS})
    broken = read(tmp_path / "broken", {**AWS, "secrets.toml": SECRETS, "inputs.toml": "x ="})

    assert check_stack(local) is local
    assert check_stack(broken) is broken


def test_what_the_directory_says_already_is_not_said_twice() -> None:
    from exclave.appconfig.read_app import read_app  # noqa: PLC0415 - only here

    before = read_app(APPS / "acme-aws")
    after = check_stack(before)

    places = [(item.code, item.file, item.line) for item in after.diagnostics]
    assert len(places) == len(set(places))
    assert {item.code for item in before.diagnostics} <= {item.code for item in after.diagnostics}
