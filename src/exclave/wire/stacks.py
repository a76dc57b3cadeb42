"""Stacks: the files that a customer runs, what they report, and what the app requires."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from exclave.base.digests import canonical_json
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

ShortText = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
RoleText = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]
MOST_OUTPUT_BYTES = 64 << 10


def _check_size(outputs: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(canonical_json(outputs)) > MOST_OUTPUT_BYTES:
        raise ValueError(f"the outputs of a Stack have at most {MOST_OUTPUT_BYTES} bytes")
    return outputs


StackOutputs = Annotated[
    dict[FactName, JsonValue], Field(max_length=500), AfterValidator(_check_size)
]

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

    `size` and `sha256` are of `content`, which is empty for an archive: that one is fetched. A file
    that holds a one-time token is rendered anew each time it is fetched from `url`, and voids the
    one before.
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


class StackStep(Reply):
    """One thing that a customer does with a Stack in a cloud, such as to apply or to stop it."""

    title: str
    text: str = ""
    commands: list[str] = []
    """Lines for a shell, in this order."""
    links: list[StackLink] = []


class StackInstructions(Reply):
    """How the customer runs the Stack."""

    summary: str
    commands: list[str] = []
    """Lines for a shell: alternatives for `local`, the first step's in their order for a cloud."""
    links: list[StackLink] = []
    warning: str = ""
    """Why the commands should not be used as they are; empty if there is no reason."""
    steps: list[StackStep] = []
    """The whole life of a Stack in a cloud; empty for `local`."""


class StackCreated(Reply):
    """A new Stack: its files, and how the customer runs them until it expires."""

    id: Id
    version: int
    cloud: Cloud
    expires_at: datetime
    files: list[StackFile]
    parameters: list[StackParameter] = []
    instructions: StackInstructions
    page: str = ""
    """The page for the customer of an install in a cloud; its address is the link."""
    link_id: str = ""
    """The id by which the link is revoked."""
    digest: str = ""
    """The digest of what the customer applies; empty for `local`."""
    findings: list[str] = []
    """What the app should do otherwise."""


class StackLinkReply(Reply):
    """A link for a customer that works; its code is shown once, when it is made."""

    id: Id
    created_by: str
    created_at: datetime
    expires_at: datetime


class StackLinks(Reply):
    """The links to an install's Stack that work."""

    items: list[StackLinkReply]


class StackChange(Reply):
    """A part of a Stack that another version has otherwise."""

    kind: str
    """`added`, `removed` or `changed`."""
    part: str
    """`role`, `secret`, `input`, `template`, `machine` or `network`."""
    name: str
    details: list[str] = []
    """What is different, in Markdown."""
    is_wider: bool = False
    """Whether a runner may do more than before."""


class StackDiff(Reply):
    """What changes for the customer from one version to another."""

    before: int
    after: int
    changes: list[StackChange]


class BeaconReply(Reply):
    """What somebody says who claims to be a machine of the Stack; nothing of it is verified."""

    stage: str
    note: str = ""
    at: datetime


class StackVersionReply(Reply):
    """A version of an install's Stack, without its outputs."""

    id: Id
    version: int
    state: StackState
    config_id: Id
    digest: str = ""
    created_at: datetime
    applied_at: datetime | None = None
    """When the runner first reported that this version is applied."""
    beacon: BeaconReply | None = None


class StackVersions(Reply):
    """The last versions of an install's Stack, newest first."""

    items: list[StackVersionReply]


class ReportedCluster(Request):
    """A cluster that the customer named; neither its address nor a credential is sent."""

    reachable: bool
    version: Annotated[str, StringConstraints(max_length=100)] = ""


class DocumentFacts(Request):
    """Which document the runner reads in the customer's account: it says what is applied."""

    format: Annotated[int, Field(ge=1, le=1000)]
    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    generator: ShortText = ""


class ReportedMachine(Request):
    """The machine that the runner is on, as its cloud names it."""

    id: ShortText = ""
    zone: ShortText = ""
    image: ShortText = ""
    type: ShortText = ""


class ReportedProgram(Request):
    """The runner program on a machine in a cloud, and why another one does not run there."""

    version: ShortText
    updates: Literal["auto", "pinned"] = "auto"
    """`pinned`: only the customer changes the program."""
    problem: ShortText = ""
    """Why the program that was tried last was left again."""


class StackReport(Request):
    """What a Stack reports: facts about where it runs, names of secrets, inputs.

    In a cloud also what is applied there: the document's facts and outputs, the roles and whether
    they are on, the mode, the kill switch, the machine.

    Values of secrets and of sensitive inputs stay with the customer: the report only says whether
    they are there.
    """

    facts: Annotated[dict[FactName, FactText], Field(max_length=50)]
    secrets: Annotated[dict[Name, bool], Field(max_length=500)] = {}
    inputs: Annotated[dict[StackInputName, InputText], Field(max_length=500)] = {}
    sensitive_inputs: Annotated[list[StackInputName], Field(max_length=500)] = []
    clusters: Annotated[dict[Name, ReportedCluster], Field(max_length=20)] = {}
    document: DocumentFacts | None = None
    outputs: StackOutputs = {}
    roles: Annotated[dict[RoleText, bool], Field(max_length=200)] = {}
    mode: Literal["", "full", "plan-only"] = ""
    enabled: bool = True
    """False once the customer has thrown the kill switch of the Stack."""
    machine: ReportedMachine | None = None
    program: ReportedProgram | None = None


class StackProgress(Request):
    """What a machine says before it has proved anything; it is only shown."""

    stage: Literal["booted", "waiting", "installed", "disabled", "failed"]
    note: Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")] = ""


class Leaving(Request):
    """Why a machine goes; another one usually takes its place."""

    reason: Literal["terminating", "replaced", "stopping"]


RELEASE_SIGNED = "exclave-program+jws"
"""The type of the signature of a release."""

ProgramVersion = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z.+]{0,60}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ProgramRelease(Reply):
    """A runner program: its version, and the SHA-256 of its archive for each machine."""

    version: ProgramVersion
    x86_64: Sha256
    aarch64: Sha256


class ProgramOffer(Reply):
    """The program that runners in clouds should run."""

    release: str
    """A `ProgramRelease` as JSON: exactly the text that is signed."""
    signature: str
    """A detached JWS by the control plane's signing key."""


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
