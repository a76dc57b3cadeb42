"""A customer who has a shell, the AWS CLI and the page of instructions, and types what it says."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from exclave.stacks.aws.commands import PARAMETERS
from tests.support.python_tools import need_python_tool

_STEP = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


class CustomerShell:
    """The commands of a page, by the titles of their steps, and a folder in which they run."""

    def __init__(self, aws_url: str, folder: Path) -> None:
        self.aws_url, self.folder = aws_url, folder
        self.steps: dict[str, list[str]] = {}

    def read(self, page: str) -> None:
        """Read the instructions."""
        blocks = {title: _BLOCK.findall(text) for title, text in _STEP.findall(page)}
        self.steps = {title: "".join(found).splitlines() for title, found in blocks.items()}

    def run(self, title: str, **filled_in: str) -> list[str]:
        """Paste the commands of a step, with the values that it asks for; return what they print."""
        commands = self.steps[title]
        for name, value in filled_in.items():
            asked = f"ParameterKey={name},ParameterValue="
            assert any(asked in command for command in commands)
            commands = [command.replace(asked, asked + value) for command in commands]
        return self._paste(commands)

    def fill_in(self, values: Mapping[str, str]) -> None:
        """Write values into the file of parameters, which asks for exactly these."""
        file = self.folder / PARAMETERS
        asked = json.loads(file.read_text())
        assert {item["ParameterKey"] for item in asked} == set(values)
        for item in asked:
            item["ParameterValue"] = values[item["ParameterKey"]]
        file.write_text(json.dumps(asked))

    def _paste(self, commands: Sequence[str]) -> list[str]:
        path = [str(need_python_tool("awscli").parent), os.defpath]
        env = {
            "PATH": os.pathsep.join(path),
            "HOME": str(self.folder),
            "AWS_ENDPOINT_URL": self.aws_url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        argv = ["bash", "-eu", "-o", "pipefail", "-c", "\n".join(commands)]
        done = subprocess.run(
            argv, cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()
