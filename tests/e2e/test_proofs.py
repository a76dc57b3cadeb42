"""The scripts that prove in a real account what cannot be proved without one.

Here they meet stand-ins of the programs that they call, so that their own steps are tried.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exclave.appconfig.read_app import read_app
from exclave.stacks.aws.stack import AwsStack
from exclave.stacks.base import StackAddress
from exclave.stacks.guide_text import write_instructions
from exclave.stacks.model import RoleModel
from exclave.stacks.registry import find_cloud_stack
from tests.support.aws_stacks import ROLES, make_model
from tests.support.python_tools import need_python_tool

FOLDER = Path(__file__).parents[2] / "deploy" / "prove"
CLOUDS = ("aws", "azure", "gcp")
PROGRAMS = ("aws", "az", "gcloud", "terraform", "curl", "unzip")
_STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$(basename "$0") $*" in
  *"$FAIL_AT"*) exit 1 ;;
  exclave*"installs create"*) echo '{"id": "ins_1", "workflow_id": "wfl_1"}' ;;
  exclave*"installs stack "*) echo '{"page": "https://runners.example/v1/stacks/xcv_1/"}' ;;
  exclave*"stack-versions"*) echo "{\\"items\\": [{\\"state\\": \\"$(cat "$CALLS.state")\\"}]}" ;;
  exclave*"installs get"*)
    date +%N > "$CALLS.machine"
    echo "{\\"cloud_account\\": {\\"machine\\": \\"$(cat "$CALLS.machine")\\"}}" ;;
  *create-stack*|*RunnerEnabled,ParameterValue=true*) echo active > "$CALLS.state" ;;
  *RunnerEnabled,ParameterValue=false*) echo disabled > "$CALLS.state" ;;
  exclave*"actions run"*) echo '{"id": "wfl_2"}' ;;
  exclave*"workflows get"*)
    if [ -e "$CALLS.held" ]; then state=cancelled; else state=running; touch "$CALLS.held"; fi
    echo "{\\"state\\": \\"$state\\"}" ;;
  curl*INSTRUCTIONS.md*) cat "$PAGE" ;;
esac
"""
NEVER = "nothing like this is called"


def write_page() -> str:
    """Return the customer's page for a Stack with the break-glass role of the proof's app."""
    rescue = RoleModel("rescue", ROLES[-1].kind, "rescue", "Rescue", policies=ROLES[-1].policies)
    model = make_model(roles=(*ROLES[:3], rescue))
    address = StackAddress("https://runners.example", "xcv_1")
    return write_instructions(model, AwsStack().write_guide(model, address))


class Desk:
    """A shell in which every program but the system's own is a stand-in that notes its calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs, self.log, self.page = folder / "bin", folder / "calls", folder / "page.md"
        self.programs.mkdir()
        (folder / "tmp").mkdir()
        self.page.write_text(write_page())

    def add(self, *names: str) -> None:
        for name in names:
            program = self.programs / name
            program.write_text(_STAND_IN)
            program.chmod(0o755)

    def run(self, cloud: str, *words: str, fail_at: str = NEVER) -> tuple[int, str]:
        env = {
            "PATH": os.pathsep.join([str(self.programs), os.defpath]),
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "CALLS": str(self.log),
            "PAGE": str(self.page),
            "FAIL_AT": fail_at,
        }
        argv = ["bash", str(FOLDER / f"{cloud}.sh"), *words]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def list_calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def find_call(self, start: str) -> int:
        """Return the place of the first call that begins so."""
        return next(at for at, call in enumerate(self.list_calls()) if call.startswith(start))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.add(*PROGRAMS)
    return made


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_dry_run_says_what_each_step_proves_and_calls_nothing(cloud: str, desk: Desk) -> None:
    (desk.programs / "exclave").write_text(f'#!/bin/sh\nexec {sys.executable} -m exclave "$@"\n')
    (desk.programs / "exclave").chmod(0o755)

    code, output = desk.run(cloud, "--dry-run")

    assert code == 0, output
    assert desk.list_calls() == []
    assert output.count("Proves: ") >= 8
    assert list((desk.folder / "tmp").iterdir()) == []
    if find_cloud_stack(cloud) is not None:
        pasted = output.partition("The page: Stop everything\n")[2]
        assert pasted.startswith("+ ")


@pytest.mark.parametrize("cloud", CLOUDS)
def test_without_an_account_nothing_begins(cloud: str, desk: Desk) -> None:
    desk.add("exclave")

    code, output = desk.run(cloud)
    unknown, _ = desk.run(cloud, "--dry-run", "--nonsense", "x")

    assert (code, unknown) == (2, 2)
    assert "Usage: " in output
    assert desk.list_calls() == []


def test_every_step_is_taken_and_everything_is_removed(desk: Desk) -> None:
    desk.add("exclave")

    code, output = desk.run("aws", "--account", "123456789012")

    assert code == 0, output
    assert "All 13 proofs are done." in output
    calls = desk.list_calls()
    assert sum("EnableRescueRole" in call for call in calls) >= 2
    assert desk.find_call("aws cloudformation create-stack") < desk.find_call(
        "aws cloudformation delete-stack"
    )
    assert calls[-1].startswith("exclave installs delete prove-")
    assert "--forget" not in calls[-1]
    assert list((desk.folder / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("fail_at", "is_applied"),
    [("installs stack ", False), ("workflows watch", True), ("simulate-principal-policy", True)],
)
def test_what_was_made_is_removed_after_a_failure(
    fail_at: str, is_applied: bool, desk: Desk
) -> None:
    desk.add("exclave")

    code, output = desk.run("aws", "--account", "123456789012", fail_at=fail_at)

    calls = desk.list_calls()
    deleted = [call for call in calls if call.startswith("aws cloudformation delete-stack")]
    assert code != 0
    assert "proofs are done" not in output
    assert (len(deleted) == 1) is is_applied
    assert calls[-1].startswith("exclave installs delete prove-")
    assert "--forget" in calls[-1]


def test_what_is_to_be_kept_is_named_and_not_removed(desk: Desk) -> None:
    desk.add("exclave")

    _, output = desk.run("aws", "--keep", "--account", "123456789012", fail_at="workflows watch")

    assert "Kept: install prove-" in output
    assert not [call for call in desk.list_calls() if "delete" in call]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_apps_of_the_proofs_are_right(cloud: str) -> None:
    checked = read_app(FOLDER / "apps" / cloud)

    assert checked.app.cloud == cloud
    assert checked.diagnostics == ()


def test_the_linter_of_shell_scripts_has_nothing_to_say() -> None:
    argv = [str(need_python_tool("shellcheck")), "-x", "--format=json1"]
    scripts = sorted(map(str, FOLDER.glob("*.sh")))
    done = subprocess.run(
        [*argv, *scripts], cwd=FOLDER.parents[1], capture_output=True, check=False
    )

    assert json.loads(done.stdout) == {"comments": []}
    assert len(scripts) == 4
