"""One way from an app and an install to a model: offline, and in the control plane."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from exclave.appconfig.checks.inert_keys import INERT
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.model.kinds.runner import Runner
from exclave.appconfig.model.kinds.stack import Stack
from exclave.domain.stacks import Cloud
from exclave.stacks.building.names import check_names
from exclave.stacks.building.nested import build_nested, choose_templates
from exclave.stacks.building.parts import InstallFacts, Render, StackParts
from exclave.stacks.building.roles import build_roles
from exclave.stacks.building.texts import Texts, Where
from exclave.stacks.findings import Finding, find_errors
from exclave.stacks.model import InputModel, SecretModel, StackModel
from exclave.stacks.naming import fit_name

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9-]+")
_LONGEST_NAME: Final = 128


@dataclass(frozen=True, slots=True)
class BuiltModel:
    """A model, and everything that is wrong with it."""

    model: StackModel
    findings: tuple[Finding, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether files may be rendered of it."""
        return not find_errors(self.findings)


def build_model(parts: StackParts, install: InstallFacts, render: Render) -> BuiltModel:
    """Return the model of an install's Stack; with errors it must not be rendered."""
    texts = Texts(render)
    stack, runner = parts.stack or Stack(), parts.runner or Runner()
    cloud = Cloud(parts.cloud)
    _check_runner(runner, texts)
    roles = build_roles(parts, install, texts)
    secrets, inputs = _build_secrets(parts, texts), _build_inputs(parts)
    check_names(cloud, roles, secrets, inputs, texts)
    network_template, runner_template = choose_templates(stack, cloud, texts)
    model = StackModel(
        install_id=install.install_id,
        install=install.install,
        org_id=install.org_id,
        app=install.app,
        cloud=cloud,
        account=install.account,
        stack_name=_write_name(stack, install, texts),
        description=texts.show(stack.description, Where("stack", at=("description",))),
        runner_url=install.runner_url,
        keys=install.keys,
        program=install.program,
        roles=tuple(role for role, _ in roles),
        secrets=tuple(secret for secret, _ in secrets),
        inputs=tuple(item for item, _ in inputs),
        nested=build_nested(stack.custom_nested_stacks, cloud, inputs, texts),
        instance_type=runner.instance_type,
        network_template=network_template,
        runner_template=runner_template,
        deployment_scope=stack.deployment_scope or "resource_group",
        wanted_outputs=parts.wanted_outputs,
    )
    return BuiltModel(model, tuple(texts.findings))


def _check_runner(runner: Runner, texts: Texts) -> None:
    for key, hint in INERT[Runner].items():
        if getattr(runner, key):
            message = f"`{key}` has no effect in this version"
            texts.warn(Code.NOT_APPLIED, Where("runner", at=(key,)), message, hint)


def _write_name(stack: Stack, install: InstallFacts, texts: Texts) -> str:
    """Return the name of the Stack in the account, in the characters that clouds take."""
    name = texts.show(stack.name, Where("stack", at=("name",))) or f"exclave-{install.install_id}"
    name = _NOT_IN_NAMES.sub("-", name).strip("-")
    return fit_name(name if name[:1].isalpha() else f"exclave-{name}", _LONGEST_NAME)


def _build_secrets(parts: StackParts, texts: Texts) -> Sequence[tuple[SecretModel, Where]]:
    """Return the secrets with their places."""
    secrets = []
    for secret in parts.secrets:
        where = Where("secrets", secret.name)
        name = texts.need(secret.name, where.child("name"))
        model = SecretModel(
            name=name,
            title=texts.show(secret.display_name, where.child("display_name")) or name,
            description=texts.show(secret.description, where.child("description")),
            required=secret.required,
            auto_generate=secret.auto_generate,
            default=secret.default or "",
        )
        secrets.append((model, where))
    return secrets


def _build_inputs(parts: StackParts) -> Sequence[tuple[InputModel, Where]]:
    """Return the inputs that the customer sets, with their places."""
    return [
        (
            InputModel(
                name=item.name,
                title=item.display_name or item.name,
                description=item.description,
                type=item.type or "string",
                default=item.default,
                required=item.required,
                sensitive=item.sensitive,
            ),
            Where("inputs", item.name),
        )
        for item in parts.inputs
        if item.user_configurable
    ]
