"""Settings: one frozen class per process."""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from exclave.base.addresses import is_loopback
from exclave.domain.quotas import Quotas
from exclave.domain.timings import Timings

PREFIX = "EXCLAVE_"
Port = Annotated[int, Field(ge=0, le=65535)]


def _require_loopback(url: str) -> str:
    """Return a URL of this machine or an empty one; only tests have a server there."""
    host = urlsplit(url).hostname or ""
    if url and not is_loopback(host):
        message = "the host must be a loopback address; in a cloud, leave it empty"
        raise ValueError(message)
    return url


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
    bundles: Annotated[
        Path | None,
        Field(
            description="Folder of the runner program for machines in clouds:"
            " `runner-VERSION-x86_64.tar.gz` and `runner-VERSION-aarch64.tar.gz`."
        ),
    ] = None
    stack_bucket: Annotated[
        str,
        Field(
            pattern=r"^([a-z0-9][a-z0-9-]{1,61}[a-z0-9])?$",
            description="Public S3 bucket to publish CloudFormation templates in,"
            " so that customers can create a Stack in the console.",
        ),
    ] = ""
    stack_bucket_region: Annotated[str, Field(description="Region of that bucket.")] = ""
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
    attest: Annotated[
        str,
        Field(
            description="Clouds whose machines may enrol by attestation, of `aws,azure,gcp`; `off`:"
            " none, runners need enrolment tokens."
        ),
    ] = "aws,azure,gcp"
    attest_proxy: Annotated[
        str, Field(description="HTTPS proxy through which clouds are asked about evidence.")
    ] = ""
    attest_roots: Annotated[
        Path | None,
        Field(
            description="Roots (PEM) that documents of Azure must lead to; default: those of"
            " Mozilla."
        ),
    ] = None
    attest_sts_url: Annotated[
        str, Field(description="Ask this address instead of AWS STS of the region (for tests).")
    ] = ""
    attest_google_keys_url: Annotated[
        str, Field(description="Address of Google's signing keys (for tests).")
    ] = ""
    attest_azure_keys_url: Annotated[
        str,
        Field(description="Address of the signing keys of a `{tenant}` of Azure (for tests)."),
    ] = ""
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
    boot: Annotated[
        Path | None,
        Field(
            description="File of a machine's boot script in a cloud; the runner enrols by"
            " attestation, as the runner of the install that it names."
        ),
    ] = None
    metadata_url: Annotated[
        str,
        Field(
            description="What stands in for the cloud's metadata server in tests, on a loopback"
            " address: a runner with any other one does not start. That jobs cannot reach the"
            " machine's own is not tried then."
        ),
        AfterValidator(_require_loopback),
    ] = ""
    cloud_url: Annotated[
        str, Field(description="Address of all APIs of the cloud (for tests).")
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
        Field(description="Allow builds to fetch from private and loopback addresses."),
    ] = False
    build_cache: Annotated[
        bool,
        Field(description="Keep layers of image builds in the org's registry for the next build."),
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
    "runner_data", "runner_url", "runner_name", "enrolment", "boot", "metadata_url",
    "cloud_url", "secrets_file", "run_as", "jobs_folder",
)  # fmt: skip
SHARED = tuple(name for name in RunnerSettings.model_fields if name not in _OWN)
"""Settings that all runners on a machine share; the others are per runner."""
