"""The customer's account as a machine in a cloud uses it: its document, secrets, roles of jobs."""

import platform
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from exclave.base.aws_regions import name_service
from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.base.logs import Log
from exclave.client.stacks import StackApi
from exclave.main.settings import RunnerSettings
from exclave.runner.audit import Audit
from exclave.runner.cloud.accounts import Caller, CloudAccount
from exclave.runner.cloud.advice import Advice
from exclave.runner.cloud.aws import AwsAccount, AwsAddresses
from exclave.runner.cloud.azure import AzureAccount
from exclave.runner.cloud.boot import Boot
from exclave.runner.cloud.document import CloudDocument, parse_document
from exclave.runner.cloud.document_file import DocumentFile
from exclave.runner.cloud.endings import is_ending_in_aws, is_ending_in_azure, is_ending_in_gcp
from exclave.runner.cloud.exchange import Route
from exclave.runner.cloud.gcp import GcpAccount, GcpAddresses
from exclave.runner.cloud.guard import find_open_metadata
from exclave.runner.cloud.identities import CloudIdentities
from exclave.runner.cloud.imds import METADATA, AwsMetadata, AzureMetadata, GcpMetadata, Machine
from exclave.runner.cloud.log_stores import open_log_store
from exclave.runner.cloud.own_log import OwnLog
from exclave.runner.cloud.program_folders import ProgramFolders
from exclave.runner.cloud.seal import prepare_seal_key
from exclave.runner.cloud.stores import CloudSecrets
from exclave.runner.config import RunnerConfig
from exclave.runner.jobs.identity import OpenIdentity
from exclave.runner.loops.cloud_reports import CloudReporter
from exclave.runner.loops.document_watch import DocumentWatch
from exclave.runner.loops.log_shipping import LogShipper
from exclave.runner.loops.network_watch import watch_network
from exclave.runner.loops.program_fetch import ProgramFetch
from exclave.runner.loops.reboot_watch import WANTED, reboot_machine, watch_reboot
from exclave.runner.loops.update_watch import UpdateWatch
from exclave.runner.processes.users import JobUser, read_run_as
from exclave.runner.runner import Duty
from exclave.wire.stacks import Cloud

_log = Log("runner.cloud")


@dataclass(frozen=True, slots=True)
class MachineMetadata:
    """What the metadata server of the machine is asked."""

    read_machine: Callable[[], Awaitable[Machine]]
    is_ending: Callable[[], Awaitable[bool]]


@dataclass(slots=True)
class CloudSide:
    """What a runner in a cloud has beside others."""

    boot: Boot
    config: RunnerConfig
    account: CloudAccount
    clock: Clock
    randomness: Randomness
    metadata: MachineMetadata
    has_metadata: bool = True
    """False if a test stands in for the metadata server of the machine."""
    started_with: CloudDocument | None = None
    """The document that said which proxy and mirror to use; both are used until the end."""
    fault: str = "whether jobs can reach the metadata server was not tried yet"
    """Why no job may run on this machine; empty if they may."""
    watch: DocumentWatch = field(init=False)
    secrets: CloudSecrets = field(init=False)
    advice: Advice = field(init=False)

    def __post_init__(self) -> None:
        file = DocumentFile(self.config.data)
        self.watch = DocumentWatch(self.account, self.boot.document, file, self.prepare)
        self.advice = Advice(self.cloud, self.watch.get_document)
        self.secrets = CloudSecrets(
            self.account,
            self.watch.get_document,
            self.advice.advise_secret,
            is_writable=self.is_writable,
        )

    @property
    def cloud(self) -> Cloud:
        """The cloud that the machine is in."""
        return Cloud(self.boot.cloud)

    @property
    def is_writable(self) -> bool:
        """Whether the runner stores secrets: in AWS, the Stack generates them."""
        return self.cloud is not Cloud.AWS

    async def prepare(self, document: CloudDocument) -> None:
        """Do what has to be done before the first job: the seal key, the guard of the metadata."""
        await prepare_seal_key(
            self.account,
            document.seal,
            document.install,
            self.config.data,
            self.randomness,
            is_writable=self.is_writable,
        )
        self.fault = await self._try_guard()
        if self.fault:
            _log.error("metadata_open", message=self.fault)

    async def _try_guard(self) -> str:
        """Return why no job may run here. What stands in for a metadata server is not guarded."""
        if not self.has_metadata:
            _log.warning("metadata_not_tried")
            return ""
        return await find_open_metadata(list_job_users(self.config))

    def make_reporter(self, api: StackApi, boot: Path) -> CloudReporter:
        """Return what reports the Stack to the control plane."""
        return CloudReporter(
            self.cloud,
            api,
            self.watch,
            self.secrets,
            self.metadata.read_machine,
            self.metadata.is_ending,
            ProgramFolders(boot.parent).explain_failure,
        )

    def make_shipper(self, own: OwnLog) -> LogShipper:
        """Return what copies the runner's own log and its audit trail to the customer's store."""
        store = open_log_store(self.account)
        return LogShipper(store, self.watch.get_document, self.metadata.read_machine, own)

    def make_updates(self, api: StackApi, boot: Path) -> list[Duty]:
        """Return what keeps program and system up to date, if this is the machine of a Stack."""
        folders, machine = ProgramFolders(boot.parent), platform.machine()
        if not folders.is_managed:
            return []
        fetch = ProgramFetch(folders, machine, self._read_mirror)
        updates = UpdateWatch(folders, self.watch.get_document, api, machine, fetch)
        reboots = partial(watch_reboot, wanted=WANTED, reboot=reboot_machine)
        network = partial(
            watch_network, read_document=self.watch.get_document, used=self.started_with
        )
        return [updates.run, network, *([reboots] if self.has_metadata else [])]

    def _read_mirror(self) -> str:
        document = self.watch.get_document()
        return "" if document is None else document.mirror

    def bind_identity(self, audit: Audit) -> OpenIdentity:
        """Return what gives jobs their roles."""
        return CloudIdentities(
            self.cloud,
            self.account,
            self.watch.get_document,
            self.clock,
            self.randomness,
            audit,
            self.advice.advise_role,
            partial(getattr, self, "fault"),
        ).open


def choose_machine(boot: Boot, settings: RunnerSettings, clock: Clock) -> MachineMetadata:
    """Return what asks the metadata server about the machine."""
    url = settings.metadata_url or METADATA
    match boot.cloud:
        case "aws":
            aws = AwsMetadata(url)
            return MachineMetadata(aws.read_machine, partial(is_ending_in_aws, aws))
        case "gcp":
            gcp = GcpMetadata(clock, url)
            return MachineMetadata(gcp.read_machine, partial(is_ending_in_gcp, gcp))
        case "azure":
            azure = AzureMetadata(clock, url)
            return MachineMetadata(azure.read_machine, partial(is_ending_in_azure, azure))


def open_account(
    boot: Boot, settings: RunnerSettings, clock: Clock, randomness: Randomness
) -> CloudAccount:
    """Return the account that the machine is in. Its APIs are reached without a proxy."""
    caller = Caller(clock, randomness, Route(ca_bundle=settings.ca_bundle))
    metadata, own = settings.metadata_url or METADATA, settings.cloud_url
    match boot.cloud:
        case "aws":
            domain = name_service("x", boot.region).removeprefix(f"x.{boot.region}.")
            addresses = AwsAddresses(boot.domain or domain, own, own, own)
            return AwsAccount(boot.region, caller, AwsMetadata(metadata), addresses)
        case "gcp":
            places = GcpAddresses(own, own, own) if own else GcpAddresses()
            return GcpAccount(caller, GcpMetadata(clock, metadata), places)
        case "azure":
            return AzureAccount(boot.identity, caller, AzureMetadata(clock, metadata), own)


async def read_first(
    account: CloudAccount, boot: Boot, config: RunnerConfig
) -> CloudDocument | None:
    """Return the document as it is when the runner starts, as far as it can be read already."""
    file = DocumentFile(config.data)
    try:
        secret = await account.read_secret(boot.document)
        if secret is not None:
            return parse_document(secret.reveal())
    except Problem as problem:
        _log.warning("document_not_read", code=problem.code, message=problem.message)
    return file.read()


def follow_network(
    document: CloudDocument | None, settings: RunnerSettings, config: RunnerConfig
) -> tuple[RunnerSettings, RunnerConfig]:
    """Return the settings with the customer's proxy and mirror; what the machine sets comes first.

    The runner, its tools and its jobs use them.
    """
    if document is None:
        return settings, config
    mirror = settings.tools_mirror or document.mirror
    followed = settings.model_copy(update={"tools_mirror": mirror})
    return followed, replace(config, proxy=config.proxy or document.proxy or None)


def list_job_users(config: RunnerConfig) -> tuple[JobUser, ...]:
    """Return the users of jobs; none if jobs run as the runner itself."""
    run_as = read_run_as(config.run_as, config.capacity)
    return () if run_as is None else run_as.users
