"""The `exclave` command: the nouns of the CLI, and the processes that `main` composes."""

import os
import sys

from exclave.cli.root import LazyCommand, build_root, run

PROCESSES = {
    "dev": LazyCommand(
        "exclave.main.commands.dev", "dev", "Run a control plane and runners on this machine."
    ),
    "server": LazyCommand(
        "exclave.main.commands.server", "group", "Run, set up and back up a control plane."
    ),
    "runner": LazyCommand(
        "exclave.main.commands.runner", "group", "Run and diagnose a runner, verify its audit log."
    ),
    "stack": LazyCommand(
        "exclave.main.commands.stack", "group", "Run the Stack of an install on this machine."
    ),
}


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(build_root(PROCESSES), sys.argv[1:], os.environ))


if __name__ == "__main__":
    main()
