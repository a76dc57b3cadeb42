"""Every library that the code imports is declared, where those who install the program need it."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "exclave"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

WITHOUT_SERVER = frozenset(
    {"appconfig", "base", "cli", "client", "domain", "jobspec", "runner", "template", "wire"}
)
"""Rooms that are used where the extra `server` is not installed."""
LOADED_BY_LIBRARIES = frozenset({"httptools", "sniffio"})
"""Declared, though no module imports them: uvicorn and httpcore load them if they are there.

httpcore looks for sniffio several times per request, and Python remembers only what it finds.
"""


def test_rooms_of_runner_and_cli_import_only_base_dependencies() -> None:
    base = read_names(PROJECT["dependencies"])

    undeclared = {
        (place, library)
        for place, library in list_imports()
        if place.parts[0] in WITHOUT_SERVER and library not in base
    }

    assert undeclared == set()


def test_every_library_that_the_server_imports_is_declared() -> None:
    declared = read_names(PROJECT["dependencies"])
    declared |= read_names(PROJECT["optional-dependencies"]["server"])

    assert {pair for pair in list_imports() if pair[1] not in declared} == set()


@pytest.mark.parametrize("extra", [None, "server"])
def test_every_declared_library_is_imported(extra: str | None) -> None:
    entries = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    imported = {library for _, library in list_imports()}

    assert read_names(entries) - imported - LOADED_BY_LIBRARIES == set()


def test_the_extra_of_the_server_has_nothing_that_the_rest_needs() -> None:
    shared = {library for place, library in list_imports() if place.parts[0] in WITHOUT_SERVER}

    assert shared & read_names(PROJECT["optional-dependencies"]["server"]) == set()


@cache
def list_imports() -> frozenset[tuple[Path, str]]:
    """List the libraries that each module of the program imports, by their distributions."""
    return frozenset(walk_imports())


def walk_imports() -> Iterator[tuple[Path, str]]:
    distributions = packages_distributions()
    for file in sorted(SOURCE.rglob("*.py")):
        for package in find_packages(file):
            if package != "exclave" and package not in sys.stdlib_module_names:
                for library in distributions.get(package, [package]):
                    yield file.relative_to(SOURCE), normalise(library)


def find_packages(file: Path) -> set[str]:
    """Find the top-level packages that a module imports, at its top or inside of functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            found.add(node.module.partition(".")[0])
    return found


def read_names(entries: list[str]) -> set[str]:
    return {normalise(re.split(r"[\[<>=!~; ]", entry, maxsplit=1)[0]) for entry in entries}


def normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
