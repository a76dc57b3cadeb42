"""Stacks: what the customer runs, what it tells about itself, and what the app asks of it."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from exclave.wire.model import Id, Name, Reply, Request
from exclave.wire.runner import ServerKey

FactName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
FactText = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
InputText = Annotated[str, StringConstraints(max_length=65_536, pattern=r"^[^\x00]*$")]
StackInputName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_{}.-]{1,100}$")]

INPUT_SECRET = "stack-input-"  # noqa: S105 - a prefix of names
"""Before the names of sensitive inputs: the customer's Stack keeps them like secrets."""


class StackSecret(Reply):
    """A secret that the app declares and the customer keeps."""

    name: Name
    description: str = ""
    required: bool = False
    auto_generate: bool = False


class StackInput(Reply):
    """An input that the customer owns."""

    name: str
    description: str = ""
    type: str = "string"
    default: str | None = None
    required: bool = False
    sensitive: bool = False


class StackTerms(Reply):
    """What the app asks of the customer at present."""

    install_id: Id
    install: str
    app: str
    secrets: list[StackSecret] = []
    inputs: list[StackInput] = []


class StackDocument(Reply):
    """What a Stack is made of; the customer's machine keeps it.

    The enrolment token is spent at the first start, and forgotten then.
    """

    terms: StackTerms
    runner_url: str
    keys: list[ServerKey]
    version: str
    """The version of the runner program that the Stack starts."""
    enrolment: str = ""


class StackCreated(Reply):
    """A fresh Stack: a script with a one-time token, and a command that fetches the same."""

    id: Id
    version: int
    expires_at: datetime
    command: str
    warning: str = ""
    """Why the command should not be used as it is; empty if there is no reason."""
    script: str


class StackReport(Request):
    """What a Stack tells about itself: facts of its machine, names of secrets, inputs.

    Values of secrets and of sensitive inputs stay where they are: only whether they are there is
    told.
    """

    facts: Annotated[dict[FactName, FactText], Field(max_length=50)]
    secrets: Annotated[dict[Name, bool], Field(max_length=500)] = {}
    inputs: Annotated[dict[StackInputName, InputText], Field(max_length=500)] = {}
    sensitive_inputs: Annotated[list[StackInputName], Field(max_length=500)] = []


class StackReply(Reply):
    """A Stack as the vendor sees it."""

    id: Id
    version: int
    state: str
    config_id: Id
    outputs: dict[str, object]
    created_at: datetime
    run_at: datetime | None


class Resigned(Reply):
    """The runner's identity is closed, by its own wish."""

    runner_id: Id
