"""The runner as a process."""

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from exclave.base.clock import Clock, SystemClock
from exclave.base.ids import Randomness, SystemRandomness
from exclave.base.logs import Log
from exclave.client.runner import HttpRunnerApi
from exclave.client.stacks import HttpStackApi
from exclave.main.build_runner import make_build_executor
from exclave.main.cloud_account import (
    CloudSide,
    choose_machine,
    follow_network,
    open_account,
    read_first,
)
from exclave.main.cloud_machine import (
    follow_boot,
    list_pinned_keys,
    make_cloud_enrolment,
)
from exclave.main.cluster_access import make_connector
from exclave.main.install_runner import make_install_executors
from exclave.main.settings import RunnerSettings
from exclave.runner.cloud.boot import Boot
from exclave.runner.cloud.own_log import OwnLog
from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.identity import KEY
from exclave.runner.control_plane.registry_access import bind_registry
from exclave.runner.executions.deps import Deps
from exclave.runner.executors.noop import NoopExecutor
from exclave.runner.executors.script import ScriptExecutor
from exclave.runner.executors.secrets import SecretClusters, SecretsExecutor
from exclave.runner.images.stack_registry import read_pull_login
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import Executor
from exclave.runner.jobs.identity import bind_no_identity
from exclave.runner.kube.access.clusters import ClusterConnector
from exclave.runner.kube.access.probe import ClusterProbe
from exclave.runner.logs.spooled_log import bind_open_log
from exclave.runner.loops.cloud_reports import CloudReporter
from exclave.runner.loops.kill_switch_watch import watch_switch
from exclave.runner.loops.log_shipping import LogShipper
from exclave.runner.processes.cell import make_cells
from exclave.runner.processes.isolation import STATE, Isolation, claim_users, decide_isolation
from exclave.runner.processes.leftovers import kill_leftovers
from exclave.runner.runner import Duty, Runner, stop_on_signals
from exclave.runner.secrets.held import (
    HeldFile,
    HeldSecrets,
    Reader,
    read_credentials,
    read_enrolment,
    read_hex_keys,
    read_password,
    read_raw_key,
    read_secrets,
    read_url_password,
)
from exclave.runner.secrets.sealing import SEAL_KEY, Sealer
from exclave.runner.secrets.source_credentials import FILE as SOURCE_CREDENTIALS
from exclave.runner.secrets.store import FileSecrets, SecretStore
from exclave.runner.stack.folder import StackFolder
from exclave.runner.stack.phone_home import Reporter
from exclave.runner.states.rescued_states import send_rescued
from exclave.wire.jobs import JobKind

_log = Log("runner")


def build_config(settings: RunnerSettings) -> RunnerConfig:
    """Return the runner's configuration; paths are absolute, because jobs run in other folders."""
    data = settings.runner_data.resolve()
    isolation = decide_isolation(settings.run_as, data, builds_tools=settings.tools_build)
    return RunnerConfig(
        data=data,
        runner_url=settings.runner_url,
        name=settings.runner_name,
        capacity=settings.capacity,
        proxy=settings.proxy or None,
        ca_bundle=_resolve(settings.ca_bundle),
        secrets_file=_resolve(settings.secrets_file),
        run_as=isolation.run_as,
        why_not_isolated=isolation.why_not,
        jobs_folder=_choose_jobs_folder(settings, isolation),
    )


async def run_runner(settings: RunnerSettings, stack: StackFolder | None = None) -> None:
    """Run until SIGTERM or SIGINT, or until the control plane revokes the identity."""
    settings, boot = follow_boot(settings)
    config = build_config(settings)
    own = OwnLog()
    if boot is not None:
        logging.getLogger().addHandler(own)
    clock = SystemClock()
    randomness = SystemRandomness()
    cloud = None if boot is None else await open_cloud(boot, settings, config, clock, randomness)
    if cloud is not None:
        settings, config = follow_network(cloud.started_with, settings, config)
    cells = make_cells(claim_users(config.run_as, config.capacity, config.data))
    if config.why_not_isolated:
        _log.warning("jobs_not_isolated", why=config.why_not_isolated)
    api, stack_api = HttpRunnerApi(config.link), HttpStackApi(config.link)
    advise = _advise_by_file(config) if stack is None else stack.format_secret_command
    secrets: SecretStore = FileSecrets(config.secrets_file, advise)
    if cloud is not None:
        advise, secrets = cloud.advice.advise_secret, cloud.secrets
    held = collect_held(settings, config, stack)
    connector = make_connector(config, find_path(settings), held.note_token)
    duties: list[Duty] = [watch_switch, send_rescued_states]
    leave: Duty | None = None
    if stack is not None:
        isolated = bool(config.run_as)
        probe = ClusterProbe(connector, clock, randomness)
        duties.append(Reporter(stack, stack_api, secrets, probe, isolated=isolated).run)
    if cloud is not None:
        file = settings.boot or Path()
        reporter, shipper = cloud.make_reporter(stack_api, file), cloud.make_shipper(own)
        duties += [cloud.watch.run, reporter.run, shipper.run]
        leave = partial(leave_machine, reporter, shipper)
        duties += cloud.make_updates(stack_api, file)
    enrolling = (
        None
        if boot is None
        else make_cloud_enrolment(boot, settings, config.link, clock, randomness)
    )
    runner = Runner(
        config,
        api=api,
        clock=clock,
        randomness=randomness,
        executors=build_executors(settings, config, secrets, held, advise, connector),
        open_log=bind_open_log(clock, randomness, held=held.find),
        held=held,
        cells=cells,
        kill_leftovers=partial(kill_leftovers, owned=cells.owned),
        enrolment_token=settings.enrolment or None,
        cloud=enrolling,
        pinned=_find_pinned(boot, stack),
        duties=duties,
        leave=leave,
        bind_identity=bind_no_identity if cloud is None else cloud.bind_identity,
    )
    stop_on_signals(runner)
    if stack is not None:
        stop_at_end_of_input(runner)
    try:
        await runner.run()
    finally:
        logging.getLogger().removeHandler(own)
        await api.close()
        await stack_api.close()
        if enrolling is not None:
            await enrolling.api.close()


async def leave_machine(reporter: CloudReporter, shipper: LogShipper, deps: Deps) -> None:
    """Announce that the machine goes, and ship the end of the log, at the same time."""
    await asyncio.gather(reporter.leave(deps), shipper.finish(deps))


async def open_cloud(
    boot: Boot, settings: RunnerSettings, config: RunnerConfig, clock: Clock, randomness: Randomness
) -> CloudSide | None:
    """Return the customer's account; None if the boot script knows of no document in it."""
    if not boot.document:
        return None
    account = open_account(boot, settings, clock, randomness)
    machine = choose_machine(boot, settings, clock)
    return CloudSide(
        boot,
        config,
        account,
        clock,
        randomness,
        machine,
        has_metadata=not settings.metadata_url,
        started_with=await read_first(account, boot, config),
    )


def collect_held(
    settings: RunnerSettings, config: RunnerConfig, stack: StackFolder | None = None
) -> HeldSecrets:
    """Return every source of secrets that this runner holds."""
    readers: dict[Path | None, Reader] = {
        config.secrets_file: read_secrets,
        config.data / SOURCE_CREDENTIALS: read_credentials,
        _resolve(settings.registry_password_file): read_password,
        config.data / SEAL_KEY: read_hex_keys,
        config.data / KEY: read_raw_key,
        None if stack is None else stack.document: read_enrolment,
    }
    files = [HeldFile(path, read) for path, read in readers.items() if path is not None]
    return HeldSecrets(files, [settings.enrolment, *read_url_password(config.proxy)])


def build_executors(
    settings: RunnerSettings,
    config: RunnerConfig,
    secrets: SecretStore,
    held: HeldSecrets,
    advise: Callable[[str], str],
    connector: ClusterConnector,
) -> dict[JobKind, Executor]:
    """Return an executor for each kind of job."""
    clock = SystemClock()
    children = ChildSettings(
        path=find_path(settings),
        proxy=config.proxy,
        no_proxy=settings.no_proxy or None,
        ca_bundle=config.ca_bundle,
    )
    registry = bind_registry(
        settings.registry_username, settings.registry_password_file, held.note_token
    )
    installs = make_install_executors(
        settings, config, children, secrets, registry, clock, SystemRandomness(), connector
    )
    return {
        JobKind.SCRIPT: ScriptExecutor(children, secrets, clock),
        JobKind.NOOP: NoopExecutor(),
        JobKind.BUILD: make_build_executor(settings, config, children, secrets, registry, clock),
        JobKind.SECRETS: SecretsExecutor(
            secrets,
            SystemRandomness(),
            advise,
            SecretClusters(
                connector,
                Sealer(config.data, SystemRandomness()),
                clock,
                partial(read_pull_login, config.data, secrets),
            ),
        ),
        **installs,
    }


def find_path(settings: RunnerSettings) -> str:
    """Return PATH of children: the setting, or that of this process."""
    return settings.path or os.environ.get("PATH", os.defpath)


def list_pinned(stack: StackFolder) -> dict[str, str]:
    """Return the control plane's keys that the vendor's script pinned."""
    return {key.kid: key.public_key for key in stack.read_document().keys}


def _find_pinned(boot: Boot | None, stack: StackFolder | None) -> dict[str, str] | None:
    """Return the control plane's keys that this machine was given; None if it was given none."""
    if boot is not None:
        return list_pinned_keys(boot)
    return None if stack is None else list_pinned(stack)


async def send_rescued_states(deps: Deps) -> None:
    """Upload Terraform states that earlier executions could not store; see `send_rescued`."""
    await send_rescued(deps.disk.path, deps.open_uplink, clock=deps.clock, audit=deps.audit)


def stop_at_end_of_input(runner: Runner) -> None:
    """Stop when the supervisor at the other end of standard input is gone."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(0, 1024):
            loop.remove_reader(0)
            runner.request_stop()

    loop.add_reader(0, look)


def _choose_jobs_folder(settings: RunnerSettings, isolation: Isolation) -> Path | None:
    """Return a folder that the users of jobs can enter; they cannot enter data folders."""
    if settings.jobs_folder is not None or not isolation.run_as:
        return _resolve(settings.jobs_folder)
    name = hashlib.sha256(str(settings.runner_data.resolve()).encode()).hexdigest()[:12]
    return STATE / "jobs" / name


def _advise_by_file(config: RunnerConfig) -> Callable[[str], str]:
    where = config.secrets_file or "the runner's secrets file"
    return lambda _: f"add it to `{where}`"


def _resolve(path: Path | None) -> Path | None:
    return None if path is None else path.resolve()


def audit_file(data: Path) -> Path:
    """Return the file of a runner's audit trail."""
    return data / "audit.jsonl"
