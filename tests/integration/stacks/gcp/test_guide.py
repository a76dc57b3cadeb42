"""The commands of Terraform in the guide, as a customer pastes them into a shell."""

import re
import subprocess
from pathlib import Path

from exclave.stacks.gcp.stack import GcpStack
from tests.support.gcp_stacks import GIVEN, make_model
from tests.support.stand_ins.module import StandInModule

SEAL = "google_secret_manager_secret.seal"


class Shell:
    """The customer's shell, in the folder that the files were written to."""

    def __init__(self, folder: Path) -> None:
        model = make_model()
        self.stack = StandInModule(folder, {}, {"google": {}})
        self.guide = GcpStack().write_guide(model, None)
        for file in GcpStack().render(model).files:
            path = folder / file.name
            path.parent.mkdir(exist_ok=True)
            path.write_text(file.content)
        self.terraform = folder / "terraform"

    def paste(self, title: str) -> str:
        """Run the commands of a step that need no cloud; say yes to what is asked."""
        (step,) = [step for step in self.guide.steps if step.title == title]
        lines = [line for line in step.commands if line.startswith(("cp ", "terraform "))]
        env = {**self.stack.env, "TF_VAR_db_password_secret": GIVEN["db_password_secret"]}
        done = subprocess.run(
            ["bash", "-ec", "\n".join(f"{line} <<< yes" for line in lines)],
            cwd=self.stack.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout


def count_changes(printed: str) -> tuple[str, ...]:
    """Return how many resources were added, changed and destroyed."""
    found = re.search(r"Resources: (\d+) added, (\d+) changed, (\d+) destroyed", printed)
    assert found is not None
    return found.groups()


def test_a_stack_is_applied_stopped_started_and_removed_but_for_its_seal(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (shell.terraform / "values.tfvars").write_text('install_domain = "shop.example"\n')

    assert "Apply complete" in shell.paste("Apply it with Terraform")
    written = (shell.terraform / "values.tfvars").read_text()
    stopped = shell.paste("Stop everything")
    started = shell.paste("Start again")
    removed = shell.paste("Remove the Stack")

    assert written == 'install_domain = "shop.example"\n', "what the customer wrote is kept"
    # The runner's account and four of roles, the group, the document.
    assert count_changes(stopped) == count_changes(started) == ("0", "7", "0")
    assert "Destroy complete" in removed
    deleted = [
        line["values"] for line in shell.stack.read_journal() if line["operation"] == "delete"
    ]
    assert len(deleted) > 50
    assert not any(
        one.get("secret_id", "").endswith("-seal") and "replication" in one for one in deleted
    )
