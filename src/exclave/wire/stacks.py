"""Stacks: the files that a customer runs, what they report, and what the app requires."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from exclave.domain.stacks import STACK_FILE
from exclave.domain.stacks import Cloud as Cloud
from exclave.domain.stacks import StackState as StackState
from exclave.wire.model import Id, Name, Reply, Request
from exclave.wire.runner import ServerKey

FactName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
FactText = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
InputText = Annotated[str, StringConstraints(max_length=65_536, pattern=r"^[^\x00]*$")]
FileName = Annotated[str, StringConstraints(pattern=STACK_FILE.pattern, max_length=200)]
StackInputName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_{}.-]{1,100}$")]

INPUT_SECRET = "stack-input-"  # noqa: S105 - a prefix of names
"""Prefix of the names under which a Stack keeps sensitive inputs among its secrets."""


class StackSecret(Reply):
    """A secret that the app declares and that stays with the customer."""

    name: Name
    description: str = ""
    required: bool = False
    auto_generate: bool = False


class StackInput(Reply):
    """An input that the customer sets."""

    name: str
    description: str = ""
    type: str = "string"
    default: str | None = None
    required: bool = False
    sensitive: bool = False


class StackTerms(Reply):
    """What the app's current config requires of the customer."""

    install_id: Id
    install: str
    app: str
    secrets: list[StackSecret] = []
    inputs: list[StackInput] = []


class StackDocument(Reply):
    """What a `local` Stack is made of; its folder on the customer's machine keeps it.

    The enrolment token is used at the first start and then removed.
    """

    terms: StackTerms
    runner_url: str
    keys: list[ServerKey]
    version: str
    """The version of the runner program that the Stack starts."""
    enrolment: str = ""


class StackFile(Reply):
    """A file of a Stack.

    `size` and `sha256` are of `content`. A file that holds a one-time token is rendered anew each
    time it is fetched from `url`, and voids the one before.
    """

    name: FileName
    media_type: str
    size: int
    sha256: str
    url: str
    content: str


class StackParameter(Reply):
    """A value that the customer fills in when they run the Stack."""

    name: str
    description: str = ""
    default: str | None = None
    required: bool = False
    sensitive: bool = False


class StackLink(Reply):
    """A page that the customer opens to run the Stack."""

    title: str
    url: str


class StackInstructions(Reply):
    """How the customer runs the Stack."""

    summary: str
    commands: list[str] = []
    """Lines for a shell; each is an alternative that works alone."""
    links: list[StackLink] = []
    warning: str = ""
    """Why the commands should not be used as they are; empty if there is no reason."""


class StackCreated(Reply):
    """A new Stack: its files, and how the customer runs them until it expires."""

    id: Id
    version: int
    cloud: Cloud
    expires_at: datetime
    files: list[StackFile]
    parameters: list[StackParameter] = []
    instructions: StackInstructions


class ReportedCluster(Request):
    """A cluster that the customer named; neither its address nor a credential is sent."""

    reachable: bool
    version: Annotated[str, StringConstraints(max_length=100)] = ""


class StackReport(Request):
    """What a Stack reports: facts about where it runs, names of secrets, inputs.

    Values of secrets and of sensitive inputs stay with the customer: the report only says whether
    they are there.
    """

    facts: Annotated[dict[FactName, FactText], Field(max_length=50)]
    secrets: Annotated[dict[Name, bool], Field(max_length=500)] = {}
    inputs: Annotated[dict[StackInputName, InputText], Field(max_length=500)] = {}
    sensitive_inputs: Annotated[list[StackInputName], Field(max_length=500)] = []
    clusters: Annotated[dict[Name, ReportedCluster], Field(max_length=20)] = {}


class StackReply(Reply):
    """A Stack as the vendor sees it."""

    id: Id
    version: int
    state: StackState
    config_id: Id
    outputs: dict[str, object]
    created_at: datetime
    run_at: datetime | None


class Resigned(Reply):
    """The runner's identity is closed, at its own request."""

    runner_id: Id
