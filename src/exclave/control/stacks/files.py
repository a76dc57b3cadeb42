"""The files of an install's Stack: rendered for its cloud, and shown with their addresses."""

from dataclasses import asdict

from exclave import __version__
from exclave.control.deps import Deps
from exclave.control.job_specs.rendering import Renderings
from exclave.control.stacks.runner_package import RunnerPackage
from exclave.control.stacks.terms import read_terms, show_terms
from exclave.domain.identity import OrgId
from exclave.domain.installs import AppInstall
from exclave.stacks.base import (
    Instructions,
    Parameter,
    RenderedStack,
    RunnerProgram,
    SigningKey,
    Stack,
    StackAddress,
    StackDocument,
)
from exclave.stacks.registry import get_stack
from exclave.storage.engine.database import Tx
from exclave.wire import stacks as wire
from exclave.wire.runner import ServerKey


def find_stack(install: AppInstall) -> Stack:
    """Return the Stack for the cloud of an install; raise `Conflict` if there is none."""
    return get_stack(install.target, owner=f"the install `{install.name}`")


def build_document(
    tx: Tx,
    deps: Deps,
    org: OrgId,
    install: AppInstall,
    token: str,
    package: RunnerPackage,
    texts: Renderings,
) -> StackDocument:
    """Build what the Stack of an install is rendered from; `token` enrols its runner."""
    return StackDocument(
        terms=read_terms(tx, org, install, texts),
        runner_url=deps.runner_url,
        keys=tuple(
            SigningKey(key.kid, key.public_key, key.signed_by, key.signature)
            for key in deps.keys.list_public(tx)
        ),
        program=RunnerProgram(__version__, package.file, package.sha256),
        enrolment=token,
    )


def show_files(stack: RenderedStack, address: StackAddress) -> list[wire.StackFile]:
    """Show files with the addresses that they are fetched from."""
    return [
        wire.StackFile(
            name=file.name,
            media_type=file.media_type,
            size=len(file.data),
            sha256=file.sha256,
            url=address.build_url(file.name),
            content=file.content,
        )
        for file in stack.files
    ]


def show_parameters(parameters: tuple[Parameter, ...]) -> list[wire.StackParameter]:
    """Show the values that the customer fills in."""
    return [wire.StackParameter(**asdict(parameter)) for parameter in parameters]


def show_instructions(instructions: Instructions) -> wire.StackInstructions:
    """Show how the customer runs the Stack."""
    return wire.StackInstructions(
        summary=instructions.summary,
        commands=list(instructions.commands),
        links=[wire.StackLink(title=link.title, url=link.url) for link in instructions.links],
        warning=instructions.warning,
    )


def show_document(document: StackDocument) -> wire.StackDocument:
    """Show the document as a machine of ours keeps it, without rendering files."""
    return wire.StackDocument(
        terms=show_terms(document.terms),
        runner_url=document.runner_url,
        keys=[ServerKey(**asdict(key)) for key in document.keys],
        version=document.program.version,
        enrolment=document.enrolment,
    )
