"""An `exclave dev` process in a folder, and the CLI connected to it."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.site import clean_env, exclave, wait_until
from tests.support.command_line import run_exclave


class DevServer:
    """`exclave dev` in a folder; can be stopped, killed and started again."""

    def __init__(self, folder: Path, *options: str, **env: str) -> None:
        self.folder = folder
        self.options = options
        self.log = folder / "dev.log"
        self.env = env
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def stacks(self) -> Path:
        return self.folder / ".exclave" / "stacks"

    @property
    def user_env(self) -> dict[str, str]:
        """The environment of a user who has no settings of their own."""
        return clean_env({"CONFIG": str(self.folder / "none.toml")})

    def start(self) -> None:
        argv = [*exclave(), "dev", "--control-port", "0", "--runner-port", "0", *self.options]
        self.log.write_text("")
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                argv,
                cwd=self.folder,
                env=clean_env(self.env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        wait_until(lambda: "Serving until" in self.log.read_text(), "exclave dev serves")

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            assert self.process.wait(60) == 0

    def run(
        self, *words: str, code: int = 0, timeout_s: float = 300
    ) -> "subprocess.CompletedProcess[str]":
        """Run a CLI command and check its exit code."""
        done = run_exclave(*words, folder=self.folder, env=self.user_env, timeout_s=timeout_s)
        assert done.returncode == code, (words, done.stdout, done.stderr, self.log.read_text())
        return done

    def ask(self, *words: str) -> Any:
        """Run a CLI command and return its JSON output."""
        out = self.run(*words, "--json").stdout
        return json.loads(out) if out else None

    def find_presence(self, install: str) -> str:
        runners = self.ask("installs", "get", install)["runners"]
        return str(runners[-1]["presence"]) if runners else ""

    def await_gate(self, install: str) -> tuple[str, str]:
        """Wait until the newest workflow of an install has an open gate; return gate and digest."""
        found: list[tuple[str, str]] = []

        def look() -> bool:
            steps = self.ask("workflows", "get", install)["steps"]
            open_ones = [s for s in steps if s["kind"] == "gate" and s["state"] == "active"]
            found[:] = [(step["name"], step["digest"]) for step in open_ones]
            return bool(found)

        wait_until(look, "a gate is open")
        return found[0]

    def list_ran(self, workflow: str, ending: str) -> set[str]:
        """Return the names of succeeded steps with this suffix, without it."""
        steps = self.ask("workflows", "get", workflow)["steps"]
        return {
            step["name"].removesuffix(ending)
            for step in steps
            if step["name"].endswith(ending) and step["state"] == "succeeded"
        }


@contextmanager
def open_dev(folder: Path, *options: str, **env: str) -> Iterator[DevServer]:
    """Start `exclave dev` in a folder, and stop it at the end."""
    site = DevServer(folder, *options, **env)
    site.start()
    try:
        yield site
    finally:
        site.stop()
