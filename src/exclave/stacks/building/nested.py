"""The templates that `stack.toml` names: the vendor's own ones, and those of network and runner."""

import re
from collections.abc import Sequence
from typing import Final

from exclave.appconfig.checks.stack import is_known_template
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.sources import Position
from exclave.appconfig.model.kinds.stack import NestedStack, Stack
from exclave.base.json_values import parse_object
from exclave.domain.stacks import Cloud
from exclave.stacks.building.texts import Texts, Where
from exclave.stacks.model import InputModel, NestedModel
from exclave.stacks.naming import write_camel
from exclave.stacks.nested import MOST_RESOURCES, FlatTemplate, flatten_template, write_prefix
from exclave.stacks.template_text import TemplateError

_BUCKET: Final = re.compile(r"https://[^/\s]*\bs3\b[^/\s]*\.amazonaws\.com(\.cn)?/\S+")
_MODULE: Final = re.compile(
    r"(git::)?(https://)?[A-Za-z0-9][\w.-]*(/[\w.-]+)+//[\w./-]+(\?ref=\S+)?"
)
_HTTPS: Final = re.compile(r"https://\S+")
_NETWORK: Final = "vpc_nested_template_url"
_RUNNER: Final = "runner_nested_template_url"


def choose_templates(stack: Stack, cloud: str, texts: Texts) -> tuple[str, str]:
    """Return the addresses of the templates of network and runner, of which only some are known.

    Their content is never used: an address stands for a network or runner that Stacks have.
    """
    where = Where("stack")
    chosen = []
    for key, value in (
        (_NETWORK, stack.vpc_nested_template_url),
        (_RUNNER, stack.runner_nested_template_url),
    ):
        address = texts.need(value, where.child(key)) if value else ""
        if address and cloud == Cloud.AWS and not is_known_template(key, address):
            message = f"`{key}` names a template that a Stack cannot be made with"
            hint = "Remove the key: the Stack has its own network and runner. Put further"
            hint += " resources into [[custom_nested_stacks]]."
            texts.error(Code.UNKNOWN_TEMPLATE, where.child(key), message, hint)
        chosen.append(address)
    return chosen[0], chosen[1]


def build_nested(
    stacks: Sequence[NestedStack],
    cloud: str,
    inputs: Sequence[tuple[InputModel, Where]],
    texts: Texts,
) -> tuple[NestedModel, ...]:
    """Return the vendor's own templates in the order of their indexes."""
    models = tuple(_build_nested(number, nested, texts) for number, nested in enumerate(stacks))
    for number, model in enumerate(models):
        where = Where("stack").child("custom_nested_stacks", number)
        _check_template(model, cloud, where.child("template_url"), texts)
    if cloud == Cloud.AWS:
        _check_flat(models, inputs, texts)
    return tuple(sorted(models, key=lambda model: model.index))


def _build_nested(number: int, nested: NestedStack, texts: Texts) -> NestedModel:
    where = Where("stack").child("custom_nested_stacks", number)
    text = nested.template_url
    address = texts.need(text, where.child("template_url")) if is_address(text) else ""
    return NestedModel(
        name=nested.name,
        index=number if nested.index is None else nested.index,
        address=address,
        content="" if is_address(text) else text,
        parameters={
            name: texts.need(value, where.child("parameters", name))
            for name, value in nested.parameters.items()
        },
    )


def is_address(text: str) -> bool:
    """Return whether a `template_url` is an address; else it is the content of a file."""
    line = text.strip()
    is_object = line.startswith("{") and not line.startswith("{{")
    return "\n" not in line and not is_object and ("//" in line or "{{" in line)


def _check_template(model: NestedModel, cloud: str, where: Where, texts: Texts) -> None:
    pattern, hint = _WAYS[Cloud(cloud)]
    if model.address and not pattern.fullmatch(model.address):
        message = f"`{model.address}` cannot be part of a Stack for {cloud}"
        texts.error(Code.UNKNOWN_TEMPLATE, where, message, hint)
    elif model.content and cloud == Cloud.GCP:
        message = "a file cannot be part of a Stack for gcp"
        texts.error(Code.UNKNOWN_TEMPLATE, where, message, hint)
    elif model.content and cloud == Cloud.AZURE:
        try:
            parse_object(model.content, "the template")
        except ValueError as error:
            texts.error(Code.UNKNOWN_TEMPLATE, where, str(error), hint)


_WAYS: Final = {
    Cloud.LOCAL: (_HTTPS, ""),
    Cloud.AWS: (
        _BUCKET,
        "Write `./file`, or https://<bucket>.s3.<region>.amazonaws.com/<path>.",
    ),
    Cloud.AZURE: (_HTTPS, "Write `./file` with a template of ARM in JSON, or an https address."),
    Cloud.GCP: (_MODULE, "Write <repository>//<folder of a Terraform module>."),
}


def _check_flat(
    models: Sequence[NestedModel], inputs: Sequence[tuple[InputModel, Where]], texts: Texts
) -> None:
    """Check that the files of the app can be parts of one template."""
    known = {f"Install{write_camel(item.name)}" for item, _ in inputs}
    names: dict[str, str] = {}
    count = 0
    for number, model in enumerate(models):
        where = Where("stack").child("custom_nested_stacks", number)
        flat = _flatten(model, known, where.child("template_url"), texts)
        for name in (write_prefix(model.name), *flat.resources, *flat.parameters):
            if names.setdefault(name, model.name) != model.name:
                message = f"`{name}` is in `{names[name]}` and in `{model.name}`"
                hint = "Give the nested Stacks names that differ in their letters."
                texts.error(Code.DUPLICATE_NAME, where.child("name"), message, hint)
                break
        for note in flat.left_out:
            texts.warn(Code.NOT_APPLIED, where.child("template_url"), note)
        count += len(flat.resources)
    if count > MOST_RESOURCES:
        message = f"all templates have {count} resources, and a Stack may have {MOST_RESOURCES}"
        texts.error(Code.TOO_MANY, Where("stack", at=("custom_nested_stacks",)), message)


def _flatten(model: NestedModel, known: set[str], where: Where, texts: Texts) -> FlatTemplate:
    if not model.content:
        return FlatTemplate()
    try:
        return flatten_template(model.name, model.content, model.parameters or {}, known)
    except TemplateError as error:
        position = Position(error.line, 1) if error.line else None
        message = f"the template `{model.name}` cannot be part of the Stack: {error.message}"
        hint = "It becomes a part of the Stack's own template, and sees only its own names."
        texts.error(Code.UNKNOWN_TEMPLATE, where, message, hint, position=position)
        return FlatTemplate()
