"""The `Stack` protocol, and the values that a Stack is rendered from and into."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from exclave.domain.stacks import STACK_FILE, Cloud, StackFacts, StackTerms


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key of the control plane that the runner is to trust."""

    kid: str
    public_key: str
    signed_by: str | None = None
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class RunnerProgram:
    """The runner program that the control plane serves, pinned by its hash."""

    version: str
    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class StackDocument:
    """Everything that differs between the Stacks of two installs."""

    terms: StackTerms
    runner_url: str
    keys: tuple[SigningKey, ...]
    program: RunnerProgram
    enrolment: str
    """The one-time token that enrols the runner."""


@dataclass(frozen=True, slots=True)
class StackFile:
    """A text file for the customer; `name` is also the end of its address, and may have folders.

    Whoever writes the files to a disk relies on names that lead out of no folder.
    """

    name: str
    media_type: str
    content: str
    form: str = ""
    """The language that it belongs to, such as `cloudformation`; empty if it goes with all."""

    def __post_init__(self) -> None:
        """Refuse a name that is not one; a Stack with such a file is wrong."""
        if not STACK_FILE.fullmatch(self.name):
            raise ValueError(f"`{self.name}` cannot be the name of a file of a Stack")

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.content.encode()

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes, in hex."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class RenderedStack:
    """The files of one install's Stack; the main one comes first."""

    files: tuple[StackFile, ...]

    def __post_init__(self) -> None:
        """Refuse files that could not lie in one folder together."""
        names = [PurePosixPath(file.name) for file in self.files]
        folders = {folder for name in names for folder in name.parents}
        for name in names:
            if names.count(name) > 1 or name in folders:
                raise ValueError(f"two files of a Stack have the name `{name}`")

    def find_file(self, name: str) -> StackFile | None:
        """Return the file of this name, or None."""
        return next((file for file in self.files if file.name == name), None)


@dataclass(frozen=True, slots=True)
class StackAddress:
    """Where the customer fetches the files of a Stack."""

    runner_url: str
    code: str
    template_url: str = ""
    """AWS: where CloudFormation itself can read the template; empty if it is published nowhere."""

    def build_url(self, file: str) -> str:
        """Return the address of a file."""
        return f"{self.runner_url.rstrip('/')}/v1/stacks/{self.code}/{file}"


@dataclass(frozen=True, slots=True)
class Link:
    """A page that the customer opens, such as a form of the cloud's console."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Instructions:
    """How the customer runs a Stack."""

    summary: str
    commands: tuple[str, ...] = ()
    """Lines to paste into a shell, each one an alternative that works alone."""
    links: tuple[Link, ...] = ()
    warning: str = ""
    """Why the commands should not be used as they are; empty if there is no reason."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that the customer fills in when they run the Stack."""

    name: str
    description: str = ""
    default: str | None = None
    required: bool = False
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that the customer does with a Stack: apply, update, stop, start, check, remove."""

    title: str
    text: str = ""
    commands: tuple[str, ...] = ()
    """Lines to paste into a shell, in this order."""
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Guide:
    """How the customer runs a cloud's Stack through its whole life, step by step."""

    summary: str
    steps: tuple[Step, ...]
    warning: str = ""
    """Why the commands should not be used as they are; empty if there is no reason."""


class Stack(Protocol):
    """The Stack of one cloud. All methods are pure: the same arguments give the same result."""

    @property
    def cloud(self) -> Cloud:
        """The cloud that this Stack is for."""
        ...

    def render(self, document: StackDocument) -> RenderedStack:
        """Return the files that the customer runs or applies."""
        ...

    def write_instructions(self, address: StackAddress) -> Instructions:
        """Return how the customer runs the files that are served at an address."""
        ...

    def list_parameters(self, terms: StackTerms) -> tuple[Parameter, ...]:
        """Return the values that the customer fills in."""
        ...

    def read_facts(self, reported: Mapping[str, str]) -> StackFacts:
        """Return the facts that a running Stack reported, typed for this cloud."""
        ...


def list_declared_parameters(terms: StackTerms) -> tuple[Parameter, ...]:
    """Return the parameters that every cloud has: the customer's inputs and secrets of the app."""
    inputs = (
        Parameter(
            name=item.name,
            description=item.description,
            default=None if item.sensitive else item.default,
            required=item.required,
            sensitive=item.sensitive,
        )
        for item in terms.inputs
    )
    secrets = (
        Parameter(
            name=item.name,
            description=item.description,
            required=item.required and not item.auto_generate,
            sensitive=True,
        )
        for item in terms.secrets
    )
    return (*inputs, *secrets)
