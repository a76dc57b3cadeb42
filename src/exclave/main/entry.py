"""The `exclave` command: the nouns of the CLI, and the processes that this room composes."""

import os
import sys

from exclave.cli.root import LazyCommand, build_root, run

PROCESSES = {
    "dev": LazyCommand(
        "exclave.main.commands.dev", "dev", "Everything on this machine, in one folder."
    ),
    "server": LazyCommand(
        "exclave.main.commands.server", "group", "The control plane: run, set up, back up."
    ),
    "runner": LazyCommand(
        "exclave.main.commands.runner", "group", "A runner: run, diagnose, verify its audit."
    ),
    "stack": LazyCommand(
        "exclave.main.commands.stack", "group", "The Stack on this machine: run, watch, stop."
    ),
}


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(build_root(PROCESSES), sys.argv[1:], os.environ))


if __name__ == "__main__":
    main()
