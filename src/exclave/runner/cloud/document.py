"""The document that a Stack keeps for its runner: what it made, and what the customer allows."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Final, Literal

from exclave.base.errors import Kind, Problem
from exclave.base.fitted_names import fit_name
from exclave.base.json_values import (
    Json,
    JsonObject,
    object_or_empty,
    parse_object,
    require_object,
    require_text,
    text_or_empty,
)

FORMAT: Final = 1
_MOST_CHARACTERS: Final = 128 << 10
_ROLE_NAME: Final = 64
"""The longest name of a role in AWS."""
_SWITCH: Final = {"true": True, "false": False}
Mode = Literal["full", "plan-only"]
Updates = Literal["auto", "pinned"]


class DocumentBroken(Problem):
    """The document is not what a Stack writes: it is damaged, or was written by hand."""

    kind: ClassVar = Kind.INVALID
    code: ClassVar = "document_broken"
    hint: ClassVar = "Run the newest version of the Stack; it writes the document anew."


class DocumentUnknown(Problem):
    """The document was written for a newer runner, which has to be installed first."""

    kind: ClassVar = Kind.INVALID
    code: ClassVar = "document_unknown"
    hint: ClassVar = "Update the runner, or run the Stack that fits this one."


@dataclass(frozen=True, slots=True)
class ProgramPin:
    """The runner program that a fresh machine starts with: its version and SHA-256 by machine."""

    version: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CloudDocument:
    """What a Stack says to its runner. It holds no secret, only references."""

    install: str
    digest: str
    """Of what the customer applied."""
    generator: str = ""
    is_enabled: bool = True
    mode: Mode = "full"
    updates: Updates = "auto"
    program: ProgramPin = ProgramPin()
    proxy: str = ""
    mirror: str = ""
    """Where programs and tools come from; empty: from the control plane and the makers."""
    seal: str = ""
    log: str = ""
    outputs: JsonObject = field(default_factory=dict)
    roles: Mapping[str, bool] = field(default_factory=dict)
    """Whether each role is on, by the name that the app gives it."""
    role_ends: Mapping[str, datetime] = field(default_factory=dict)
    """Until when the customer allows each role for emergencies."""
    role_references: Mapping[str, str] = field(default_factory=dict)
    """What a role is in the cloud: an ARN, the e-mail of an account, a client id."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Where each secret of the app is."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    input_secrets: Mapping[str, str] = field(default_factory=dict)


def parse_document(text: str) -> CloudDocument:
    """Return the document of its text; raise if it is broken, or of an unknown format."""
    if len(text) > _MOST_CHARACTERS:
        raise DocumentBroken(
            f"the document of the Stack has more than {_MOST_CHARACTERS} characters"
        )
    try:
        fields = parse_object(text, "the document of the Stack")
    except ValueError as error:
        raise DocumentBroken(str(error)) from error
    if fields.get("format") != FORMAT:
        raise DocumentUnknown("the document of the Stack has a format that this runner cannot read")
    try:
        return _read(fields)
    except (ValueError, binascii.Error) as error:
        raise DocumentBroken(f"the document of the Stack: {error}") from error


def _read(fields: JsonObject) -> CloudDocument:
    outputs = {**object_or_empty(fields.get("outputs")), **_read_nested(fields)}
    roles = _read_texts(fields, "roles")
    encoded = _read_texts(fields, "inputs_base64")
    bundle = require_object(fields.get("bundle", {}), "`bundle`")
    return CloudDocument(
        install=require_text(fields.get("install"), "`install`"),
        digest=require_text(fields.get("digest"), "`digest`"),
        generator=text_or_empty(fields.get("generator")),
        is_enabled=_read_switch(fields.get("enabled"), "`enabled`"),
        mode=_read_mode(fields.get("mode")),
        updates=_read_updates(fields.get("updates")),
        program=ProgramPin(
            text_or_empty(bundle.get("version")),
            {key: text_or_empty(bundle.get(key)) for key in ("x86_64", "aarch64")},
        ),
        proxy=text_or_empty(fields.get("proxy")),
        mirror=text_or_empty(fields.get("mirror")),
        seal=text_or_empty(fields.get("seal")),
        log=text_or_empty(fields.get("log")),
        outputs=outputs,
        roles={name: _read_switch(value, f"`roles.{name}`") for name, value in roles.items()},
        role_ends={name: _read_end(end) for name, end in _read_texts(fields, "role_ends").items()},
        role_references=_find_references(fields, outputs, roles),
        secrets=_read_texts(fields, "secrets"),
        inputs={name: _decode(f"`inputs_base64.{name}`", value) for name, value in encoded.items()},
        input_secrets=_read_texts(fields, "input_secrets"),
    )


def _read_texts(fields: JsonObject, key: str) -> dict[str, str]:
    texts = require_object(fields.get(key, {}), f"`{key}`")
    return {name: require_text(text, f"`{key}.{name}`") for name, text in texts.items()}


def _read_switch(value: object, where: str) -> bool:
    if not isinstance(value, str) or value not in _SWITCH:
        message = f"{where} is neither `true` nor `false`"
        raise ValueError(message)
    return _SWITCH[value]


def _read_end(text: str) -> datetime:
    """Return a time in UTC; what is none has passed, so that a slip of the pen opens nothing."""
    try:
        end = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return end if end.tzinfo else end.replace(tzinfo=UTC)


def _read_mode(value: object) -> Mode:
    match value:
        case "full" | "plan-only":
            return value
        case _:
            message = "`mode` is neither `full` nor `plan-only`"
            raise ValueError(message)


def _read_updates(value: object) -> Updates:
    match value:
        case "auto" | "pinned":
            return value
        case _:
            message = "`updates` is neither `auto` nor `pinned`"
            raise ValueError(message)


def _read_nested(fields: JsonObject) -> JsonObject:
    """Return what the vendor's own templates made, where the apps read it.

    Stacks that were generated before wrote it as plain text into the outputs themselves.
    """
    key = "nested_outputs_base64"
    if key not in fields:
        return {}
    nested: dict[str, Json] = {}
    for name, values in require_object(fields[key], f"`{key}`").items():
        where = f"{key}.{name}"
        outputs = require_object(values, f"`{where}`").items()
        nested[name] = {
            output: _decode(at := f"`{where}.{output}`", require_text(value, at))
            for output, value in outputs
        }
    return {"custom_nested_stacks": nested}


def _decode(where: str, value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        message = f"{where} is not a text in Base64"
        raise ValueError(message) from error


def _find_references(
    fields: JsonObject, outputs: JsonObject, roles: Mapping[str, str]
) -> dict[str, str]:
    """Return what each role is in the cloud.

    The Stacks of Google Cloud and Azure list it. In AWS, an ARN ends with the name of its role, so
    that outputs which existing apps read anyway are enough.
    """
    named = {**_list_named(outputs), **_read_texts(fields, "role_references")}
    return {name: named[name] for name in roles if name in named} | _find_arns(
        outputs, roles, named
    )


def _list_named(outputs: JsonObject) -> dict[str, str]:
    maps = (outputs.get(key) for key in ("custom_role_arns", "break_glass_role_arns"))
    return {
        name: text
        for named in maps
        for name, text in object_or_empty(named).items()
        if isinstance(text, str)
    }


def _find_arns(
    outputs: JsonObject, roles: Mapping[str, str], named: Mapping[str, str]
) -> dict[str, str]:
    keys = [f"{kind}_iam_role_arn" for kind in ("provision", "maintenance", "deprovision")]
    arns = [text_or_empty(outputs.get(key)) for key in keys]
    by_name = {arn.rpartition("/")[2]: arn for arn in arns if arn}
    fitting = {
        name: by_name.get(fit_name(name, _ROLE_NAME), "") for name in roles if name not in named
    }
    return {name: arn for name, arn in fitting.items() if arn}
