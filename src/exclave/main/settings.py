"""Settings: one frozen class per process, read from `EXCLAVE_…` variables here and nowhere else."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from exclave.base.errors import InvalidInput
from exclave.domain.quotas import Quotas
from exclave.domain.timings import BOUNDS, Timings, check_timings

PREFIX = "EXCLAVE_"
QUOTA = "QUOTA_"
Port = Annotated[int, Field(ge=0, le=65535)]
_OTHERS = frozenset({"URL", "TOKEN", "CONFIG", "DEBUG"})
"""Variables of the command line itself."""
_GROUPS = frozenset({"timings", "quotas"})
"""Fields that stand for a group of settings."""
_LONGEST_NUMBER = 18


class Settings(BaseModel):
    """Settings of every process."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    log_level: Annotated[
        str, Field(description="Minimum level of the JSON logs on stderr: info, warning, error.")
    ] = "info"


class ServerSettings(Settings):
    """The control plane."""

    data: Annotated[Path, Field(description="Data folder: SQLite database, blobs, seal key.")] = (
        Path(".exclave")
    )
    database: Annotated[
        str,
        Field(description="Database URL, `postgresql+psycopg://…`; empty means SQLite in `data`."),
    ] = ""
    control_host: Annotated[str, Field(description="Address of the Control API.")] = "127.0.0.1"
    control_port: Annotated[Port, Field(description="Port of the Control API.")] = 8700
    runner_host: Annotated[str, Field(description="Address of the Runner API.")] = "127.0.0.1"
    runner_port: Annotated[Port, Field(description="Port of the Runner API.")] = 8701
    runner_url: Annotated[
        str,
        Field(description="URL of the Runner API as runners see it; empty: from host and port."),
    ] = ""
    registry_url: Annotated[
        str,
        Field(
            description="Keep artifacts in this OCI registry, `https://host/folder`, instead of"
            " our own; runners log in with credentials of theirs."
        ),
    ] = ""
    seal_key_file: Annotated[
        Path | None,
        Field(
            description="File of the key that encrypts signing keys and inputs; default: in `data`."
        ),
    ] = None
    s3_bucket: Annotated[
        str, Field(description="Store blobs in this bucket instead of the data folder.")
    ] = ""
    s3_prefix: Annotated[str, Field(description="Folder in the bucket.")] = ""
    s3_endpoint: Annotated[str, Field(description="URL of an S3-compatible store.")] = ""
    s3_region: Annotated[str, Field(description="Region of the bucket.")] = ""
    name: Annotated[
        str, Field(description="Name of this server among replicas; empty: generated at start.")
    ] = ""
    shutdown_s: Annotated[
        float, Field(ge=0, le=300, description="How long open requests may take at shutdown.")
    ] = 5.0
    rate_org: Annotated[
        float,
        Field(
            ge=0,
            le=1e6,
            description="Requests per second of one org to one API of this server, or to its"
            " registry, with bursts of five seconds' worth; 0: no limit.",
        ),
    ] = 5000.0
    rate_caller: Annotated[
        float,
        Field(ge=0, le=1e6, description="The same for one API token, and for one runner."),
    ] = 2500.0
    rate_log_bytes: Annotated[
        float,
        Field(
            ge=0,
            le=1e12,
            description="Bytes per second of (compressed) logs of one org, with bursts of ten"
            " seconds' worth; 0: no limit.",
        ),
    ] = 5e6
    log_bytes: Annotated[
        int,
        Field(
            ge=1 << 20,
            le=1 << 40,
            description="Maximum size of the log of one execution, before compression; the rest is"
            " not stored. Runners stay below the default anyway.",
        ),
    ] = 1 << 30
    org_requests: Annotated[
        int,
        Field(
            ge=0,
            le=10_000,
            description="Maximum number of concurrent requests of one org while no other org is"
            " active; others wait; 0: no limit.",
        ),
    ] = 32
    serve: Annotated[
        Literal["all", "control", "runner"],
        Field(
            description="Which API this process serves: all, control or runner. A single one"
            " requires PostgreSQL, and another process for the other API."
        ),
    ] = "all"
    workers: Annotated[
        int,
        Field(
            ge=1,
            le=64,
            description="Number of worker processes, for work whose cost a tenant controls:"
            " reading app directories, rendering templates.",
        ),
    ] = 2
    worker_memory_mb: Annotated[
        int, Field(ge=128, le=65536, description="Memory of one such process, in MiB.")
    ] = 512
    max_connections: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000,
            description="Maximum number of HTTP connections to this server; a third of them may"
            " be to the Control API. 0: as many as the limit of open files allows.",
        ),
    ] = 0
    disk_reserve_bytes: Annotated[
        int | None,
        Field(
            ge=0,
            description="Bytes of the data folder's disk that are reserved for the database; 0:"
            " none. Default: 5 % of the disk, but 1 to 10 GiB and at most 10 %.",
        ),
    ] = None
    timings: Timings = Timings()
    quotas: Quotas = Quotas()

    @property
    def database_url(self) -> str:
        """The URL of the database."""
        return self.database or f"sqlite:///{self.data / 'exclave.db'}"

    @property
    def blob_folder(self) -> Path:
        """The folder of blobs, if there is no object store."""
        return self.data / "blobs"

    @property
    def seal_file(self) -> Path:
        """The file of the seal key."""
        return self.seal_key_file or self.data / "seal.key"


class RunnerSettings(Settings):
    """A runner."""

    runner_data: Annotated[
        Path, Field(description="Data folder: identity, executions, outbox, audit.")
    ] = Path(".exclave-runner")
    runner_url: Annotated[str, Field(description="Address of the Runner API.")] = (
        "http://127.0.0.1:8701"
    )
    runner_name: Annotated[str, Field(description="Name shown in the control plane.")] = "runner"
    enrolment: Annotated[
        str, Field(description="One-time enrolment token; needed at the first start only.")
    ] = ""
    capacity: Annotated[
        int, Field(ge=1, le=64, description="Maximum number of jobs that run at once.")
    ] = 4
    proxy: Annotated[str, Field(description="HTTPS proxy, for the runner and its jobs.")] = ""
    no_proxy: Annotated[str, Field(description="Hosts reached without the proxy.")] = ""
    ca_bundle: Annotated[
        Path | None,
        Field(description="Additional trusted certificates (PEM), for the runner and its jobs."),
    ] = None
    registry_username: Annotated[
        str, Field(description="User name for an external OCI registry.")
    ] = ""
    registry_password_file: Annotated[
        Path | None, Field(description="File (mode 0600) with the password for that registry.")
    ] = None
    secrets_file: Annotated[
        Path | None, Field(description="JSON file (mode 0600) of secrets that jobs may use.")
    ] = None
    run_as: Annotated[
        str,
        Field(
            description="User of jobs: `auto` (a range of unused uids, one per job), a range, a"
            " user, or `none` (the runner's own user). Empty: `auto` for a new runner that is"
            " root on Linux, otherwise `none`."
        ),
    ] = ""
    jobs_folder: Annotated[
        Path | None,
        Field(
            description="Folder of running jobs; default: in `runner_data`, and with `run_as` one"
            " below `/var/lib/exclave/jobs`."
        ),
    ] = None
    path: Annotated[str, Field(description="PATH of jobs; empty: the runner's own.")] = ""
    git_protocols: Annotated[
        str,
        Field(description="Protocols that builds may fetch with: `https`, `ssh`, `http`, `file`."),
    ] = "https ssh"
    git_allow_private: Annotated[
        bool,
        Field(description="Allow builds to fetch from private, loopback and link-local addresses."),
    ] = False
    git_rewrite: Annotated[
        str,
        Field(description="Mirrors for builds, `https://old/=https://new/`; the longest wins."),
    ] = ""
    tools: Annotated[
        Path | None,
        Field(description="Folder of terraform, tofu and opa; default: `tools` in `runner_data`."),
    ] = None
    tools_download: Annotated[
        bool, Field(description="Download a missing tool from its vendor, verified by checksum.")
    ] = True
    tools_build: Annotated[
        bool, Field(description="Build a missing tool from its Go module, if `go` is on the PATH.")
    ] = False
    tools_strict: Annotated[
        bool, Field(description="Accept only the exact version that is requested, no newer patch.")
    ] = False
    tools_mirror: Annotated[
        str,
        Field(
            description="Download tools from this URL, as `<tool>/<version>/<the vendor's file>`."
        ),
    ] = ""
    tools_checksums: Annotated[
        str,
        Field(description="Required checksums, `terraform@1.11.4=<sha256>`, separated by commas."),
    ] = ""
    go_proxy: Annotated[
        str, Field(description="Module proxy for building tools; empty: Go's default.")
    ] = ""
    tf_tool: Annotated[
        Literal["terraform", "tofu"],
        Field(
            description="Program to run Terraform modules with; any version of tofu is accepted."
        ),
    ] = "terraform"
    tf_plugin_cache: Annotated[
        Path | None, Field(description="Folder in which providers are cached between jobs.")
    ] = None
    tf_mirror: Annotated[
        str,
        Field(
            description="Folder or https:// mirror; if set, the only source of Terraform providers."
        ),
    ] = ""


_OWN = (
    "runner_data", "runner_url", "runner_name", "enrolment", "secrets_file", "run_as",
    "jobs_folder",
)  # fmt: skip
SHARED = tuple(name for name in RunnerSettings.model_fields if name not in _OWN)
"""Settings that all runners on a machine share; the others are per runner."""

S = TypeVar("S", bound=Settings)
N = TypeVar("N", int, float)


def read_settings(kind: type[S], env: Mapping[str, str], **given: object) -> S:
    """Return the settings from the environment; command-line options take precedence."""
    values: dict[str, object] = {}
    for name in kind.model_fields:
        if name not in _GROUPS and env.get(PREFIX + name.upper()):
            values[name] = env[PREFIX + name.upper()]
    values |= {name: value for name, value in given.items() if value is not None}
    if "timings" in kind.model_fields:
        values["timings"] = read_timings(env)
    if "quotas" in kind.model_fields:
        values["quotas"] = read_quotas(env)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise InvalidInput(_explain(error)) from error


def read_timings(env: Mapping[str, str]) -> Timings:
    """Return the durations of the protocol, checked to be safe in combination."""
    names = [field.name for field in fields(Timings) if field.name != "max_attempts"]
    seconds = {name: _read_number(env, name, float) for name in names if _is_set(env, name)}
    attempts = Timings().max_attempts
    if _is_set(env, "max_attempts"):
        attempts = _read_number(env, "max_attempts", int)
    return check_timings(Timings(max_attempts=attempts, **seconds))


def _is_set(env: Mapping[str, str], name: str) -> bool:
    return bool(env.get(PREFIX + name.upper()))


def _read_number(env: Mapping[str, str], name: str, kind: Callable[[str], N]) -> N:
    variable = PREFIX + name.upper()
    try:
        return kind(env[variable])
    except ValueError as error:
        raise InvalidInput(f"{variable}: `{env[variable]}` is no number") from error


def read_quotas(env: Mapping[str, str]) -> Quotas:
    """Return the quotas of an org; 0 means no limit."""
    values: dict[str, int] = {}
    for field in fields(Quotas):
        name = f"{PREFIX}{QUOTA}{field.name.upper()}"
        text = env.get(name)
        if text:
            if not text.isdecimal() or len(text) > _LONGEST_NUMBER:
                raise InvalidInput(
                    f"{name}: `{text}` is no number of bytes or items",
                    hint="Write it as a whole number; 0 is no limit.",
                )
            values[field.name] = int(text)
    return Quotas(**values)


def find_unknown(env: Mapping[str, str]) -> list[str]:
    """Return unknown `EXCLAVE_…` variables, each with the most similar known one."""
    known = {PREFIX + name.upper() for name in [*_list_names(), *BOUNDS]}
    known |= {PREFIX + name for name in _OTHERS}
    known |= {f"{PREFIX}{QUOTA}{field.name.upper()}" for field in fields(Quotas)}
    unknown = []
    for name in sorted(env):
        if name.startswith(PREFIX) and name not in known and not _is_test_only(name):
            near = difflib.get_close_matches(name, known, 1)
            unknown.append(f"{name} is no setting" + (f"; did you mean {near[0]}?" if near else ""))
    return unknown


def _is_test_only(name: str) -> bool:
    return re.match(r"EXCLAVE_TEST_", name) is not None


def _list_names() -> Iterable[str]:
    for kind in (ServerSettings, RunnerSettings):
        yield from kind.model_fields


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    name = PREFIX + "_".join(str(part) for part in first["loc"]).upper()
    return f"{name}: {first['msg']}"
