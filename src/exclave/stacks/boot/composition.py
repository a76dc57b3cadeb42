"""Puts the boot script together: our program, the calls of one cloud, the facts of an install."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib import resources
from typing import TypeVar

from exclave.base.json_values import Json
from exclave.stacks.model import StackModel

Reference = TypeVar("Reference")

_PACKAGE = "exclave.stacks"
_CONSTANT = "BOOT: dict[str, Any] = "
_LINT = ("  # noqa: ", "  # type: ")
_FUTURE = "__future__"


def compose_boot_script(
    model: StackModel, references: Mapping[str, Reference]
) -> Sequence[str | Reference]:
    """Return the parts of the boot script of a machine.

    The calls of the cloud are `stacks/<cloud>/boot_calls.py`. `references` are facts that only the
    cloud knows; none of their values may hold a quote or a backslash. What the script knows never
    changes with versions, roles or inputs, so that none of these needs a new machine.
    """
    head, _, tail = _read_script(str(model.cloud)).partition(f"{_CONSTANT}{{}}\n")
    start = f"#!/usr/bin/python3\n{head}{_CONSTANT}{{\n"
    return (start, *_list_facts(model), *_list_references(references), f"}}\n{tail}")


def _list_facts(model: StackModel) -> Iterator[str]:
    facts: dict[str, Json] = {
        "install": model.install_id,
        "cloud": str(model.cloud),
        "runner_url": model.runner_url.rstrip("/"),
        "keys": [asdict(key) for key in model.keys],
    }
    for name, value in facts.items():
        yield f"    {name!r}: {value!r},\n"


def _list_references(references: Mapping[str, Reference]) -> Iterator[str | Reference]:
    for name, value in references.items():
        yield f"    {name!r}: '"
        yield value
        yield "',\n"


@cache
def _read_script(cloud: str) -> str:
    """Return one program: the common module, then the calls of the cloud."""
    common = _read_module(_PACKAGE + ".boot", "script.py")
    calls = _read_module(f"{_PACKAGE}.{cloud}", "boot_calls.py")
    return f"{common}\n\n{_drop_head(calls)}"


def _read_module(package: str, file: str) -> str:
    """Return a module without the comments for our own linters."""
    lines = resources.files(package).joinpath(file).read_text(encoding="utf-8").splitlines()
    for mark in _LINT:
        lines = [line.partition(mark)[0].rstrip() for line in lines]
    return "".join(f"{line}\n" for line in lines)


def _drop_head(module: str) -> str:
    """Return a module without what stands in the common one: docstring, imports of ours."""
    tree, lines = ast.parse(module), module.splitlines(keepends=True)
    for node in reversed(tree.body):
        is_ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            (_FUTURE, _PACKAGE)
        )
        if is_ours or isinstance(node, ast.Expr):
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines).lstrip()
