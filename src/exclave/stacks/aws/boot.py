"""The boot script of the runner's machine: a module of ours with one constant filled in."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from importlib import resources

from exclave.base.json_values import Json
from exclave.stacks.aws.references import Fact, Joined, ParameterRef, Text
from exclave.stacks.aws.resources import DOCUMENT, get_arn
from exclave.stacks.model import StackModel

_SOURCE = "boot_script_template.py"
_CONSTANT = "BOOT: dict[str, Any] = "
_LINT = ("  # noqa: ", "  # type: ")


def build_boot_script(model: StackModel) -> Joined:
    """Return the boot script; only what never changes with versions differs between installs."""
    head, _, tail = _read_template().partition(f"{_CONSTANT}{{}}\n")
    return Joined(
        (f"#!/usr/bin/python3\n{head}{_CONSTANT}{{\n", *_list_facts(model), f"}}\n{tail}")
    )


def _list_facts(model: StackModel) -> Iterator[Text]:
    yield from _write_fact("install", model.install_id)
    yield from _write_fact("cloud", str(model.cloud))
    yield from _write_fact("runner_url", model.runner_url.rstrip("/"))
    yield from _write_fact("keys", [asdict(key) for key in model.keys])
    yield from _write_reference("region", Fact.REGION)
    yield from _write_reference("domain", Fact.DOMAIN)
    yield from _write_reference("document", get_arn(DOCUMENT))
    if not model.account.is_known:
        yield from _write_reference("code", ParameterRef("EnrolmentCode"))


def _write_fact(name: str, value: Json) -> Iterator[Text]:
    yield f"    {name!r}: {value!r},\n"


def _write_reference(name: str, value: Text) -> Iterator[Text]:
    """Write a value that the cloud knows; none of these can hold a quote or a backslash."""
    yield f"    {name!r}: '"
    yield value
    yield "',\n"


@cache
def _read_template() -> str:
    """Return the module without the comments for our own linters."""
    source = resources.files("exclave.stacks.aws").joinpath(_SOURCE).read_text(encoding="utf-8")
    lines = source.splitlines()
    for mark in _LINT:
        lines = [line.partition(mark)[0].rstrip() for line in lines]
    return "".join(f"{line}\n" for line in lines)
