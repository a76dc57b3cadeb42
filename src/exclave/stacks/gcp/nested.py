"""Modules of the vendor that become a part of the Stack."""

from collections.abc import Mapping

from exclave.base.json_values import JsonObject
from exclave.stacks.model import NestedModel, StackModel
from exclave.stacks.naming import write_snake
from exclave.stacks.terraform.module_files import ModuleFiles
from exclave.stacks.terraform.text import escape

GIT = "git::"
_HTTPS = "https://"
_GITHUB = "github.com"


def add_nested(files: ModuleFiles, model: StackModel) -> Mapping[str, str]:
    """Add the vendor's modules in their order; return their outputs by name, as expressions.

    An output that is no text is written as JSON.
    """
    outputs: dict[str, str] = {}
    for nested in sorted(model.nested, key=lambda item: item.index):
        name = name_module(nested)
        given = {escape(key): escape(text) for key, text in (nested.parameters or {}).items()}
        body: JsonObject = {
            **given,
            "source": write_source(nested.address),
            "depends_on": ["google_project_service.apis"],
        }
        files.add_block("module", "", name, body)
        text = "base64encode(try(tostring(value), jsonencode(value)))"
        outputs[nested.name] = f"${{{{for key, value in module.{name} : key => {text}}}}}"
    return outputs


def name_module(nested: NestedModel) -> str:
    """Return the name of a module in the module."""
    return f"nested_{write_snake(nested.name)}"


def write_source(address: str) -> str:
    """Return the source of a module from `<repository>//<folder>`; a short one is on GitHub."""
    bare = address.removeprefix(GIT).removeprefix(_HTTPS)
    repository, _, folder = bare.partition("//")
    if "." not in repository.partition("/")[0]:
        repository = f"{_GITHUB}/{repository}"
    repository = repository.removesuffix(".git")
    return escape(f"{GIT}{_HTTPS}{repository}.git//{folder}")


def is_pinned(nested: NestedModel) -> bool:
    """Return whether the address names a version of the module."""
    return "?ref=" in nested.address
