"""Build the dependencies of the control plane from its settings."""

import fcntl
import os
from pathlib import Path
from typing import IO

from cryptography.fernet import Fernet

from exclave.base.aws_regions import find_partition
from exclave.base.clock import SystemClock
from exclave.base.errors import Conflict, InvalidInput
from exclave.base.ids import Ids, SystemRandomness
from exclave.control.deps import ServerDeps
from exclave.control.dispatch.direct_offers import OFFER, offer_listener
from exclave.control.keyring import Keyring
from exclave.control.runtime.log_limits import LogLimits
from exclave.control.runtime.loop_shares import LoopShares
from exclave.control.runtime.parked_polls import ParkedPolls
from exclave.control.runtime.rates import Limits, Rates
from exclave.control.runtime.request_slots import RequestSlots
from exclave.control.runtime.sync_folders import SyncFolders
from exclave.control.runtime.template_bucket import TemplateBucket
from exclave.control.vault import Vault
from exclave.control.workers.pool import WorkerProcesses
from exclave.main.attestors import build_attestors
from exclave.main.data_folder import prepare_data_folder
from exclave.main.settings import ServerSettings
from exclave.storage import keys
from exclave.storage.blobs.base import Blobs
from exclave.storage.blobs.files import FileBlobs
from exclave.storage.blobs.s3 import S3Blobs, S3Place
from exclave.storage.engine.database import Database, Tx
from exclave.storage.engine.dialects import choose_dialect
from exclave.storage.engine.disk import Disk
from exclave.storage.engine.hub import Hub
from exclave.storage.engine.private_files import make_private
from exclave.storage.migrate import upgrade


def build_deps(settings: ServerSettings) -> ServerDeps:
    """Open the database (migrated), the blob store and the keys."""
    prepare_data_folder(settings.data)
    upgrade(settings.database_url)
    clock = SystemClock()
    ids = Ids(clock, SystemRandomness())
    hub = Hub()
    name = settings.name or ids.new("srv")
    db = Database(choose_dialect(settings.database_url), clock, hub, name=name)
    seal = load_seal(settings.seal_file)
    keyring = Keyring(seal, ids, clock)

    def set_up(tx: Tx) -> None:
        keys.add_cluster(tx, ids.new("cls"))
        keyring.ensure_key(tx)

    db.write_now(set_up)
    parked_polls = ParkedPolls()
    hub.handlers[OFFER] = offer_listener(parked_polls, hub)
    loop_slots = RequestSlots(settings.org_requests)
    disk = Disk(settings.data, clock, settings.disk_reserve_bytes)
    return ServerDeps(
        db=db,
        blobs=open_blobs(settings, disk),
        disk=disk,
        quotas=settings.quotas,
        hub=hub,
        clock=clock,
        ids=ids,
        keys=keyring,
        vault=Vault(seal),
        sync_folders=SyncFolders(settings.data / "syncs"),
        timings=settings.timings,
        runner_url=get_runner_url(settings),
        registry_url=settings.registry_url,
        bundles=settings.bundles,
        template_bucket=open_template_bucket(settings),
        parked_polls=parked_polls,
        rates=Rates(Limits(settings.rate_org, settings.rate_caller, settings.rate_log_bytes)),
        log_limits=LogLimits(settings.log_bytes),
        request_slots=RequestSlots(settings.org_requests, shared=settings.org_requests),
        loop_slots=loop_slots,
        loop_shares=LoopShares(loop_slots),
        workers=WorkerProcesses(settings.workers, memory_mb=settings.worker_memory_mb),
        attestors=build_attestors(settings, clock),
    )


def lock_data(settings: ServerSettings) -> IO[bytes] | None:
    """Lock the SQLite database against a second server, for as long as the file stays open."""
    if settings.database:
        return None
    prepare_data_folder(settings.data)
    lock = (settings.data / "server.lock").open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise Conflict(
            f"another server works on {settings.data}",
            hint="Stop it first, or use PostgreSQL to run several servers.",
        ) from error
    return lock


def get_runner_url(settings: ServerSettings) -> str:
    """Return the URL of the Runner API."""
    return settings.runner_url or f"http://{settings.runner_host}:{settings.runner_port}"


def open_blobs(settings: ServerSettings, disk: Disk | None = None) -> Blobs:
    """Open the blob store that the settings name."""
    if not settings.s3_bucket:
        return FileBlobs(settings.blob_folder, disk=disk)
    return S3Blobs(
        S3Place(
            bucket=settings.s3_bucket,
            prefix=settings.s3_prefix,
            endpoint=settings.s3_endpoint,
            region=settings.s3_region,
        )
    )


def open_template_bucket(settings: ServerSettings) -> TemplateBucket | None:
    """Open the bucket in which templates are published; None if the settings name none.

    Its credentials are those of the machine, or of the usual `AWS_…` variables.
    """
    if not settings.stack_bucket:
        return None
    if find_partition(settings.stack_bucket_region) is None:
        raise InvalidInput(
            f"`{settings.stack_bucket_region}` is not the region of a bucket",
            hint="Set EXCLAVE_STACK_BUCKET_REGION to the region of EXCLAVE_STACK_BUCKET.",
        )
    objects = S3Blobs(S3Place(settings.stack_bucket, region=settings.stack_bucket_region))
    return TemplateBucket(objects, settings.stack_bucket, settings.stack_bucket_region)


def load_seal(file: Path) -> bytes:
    """Return the key that seals signing keys; create it, private to its user, if it is missing."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        seal = file.read_bytes().strip()
        make_private(file)
    else:
        seal = Fernet.generate_key()
        with os.fdopen(handle, "wb") as out:
            out.write(seal + b"\n")
            out.flush()
            os.fsync(out.fileno())
    try:
        Fernet(seal)
    except ValueError as error:
        raise InvalidInput(
            f"{file} is not a seal key", hint="Restore the file from your backup."
        ) from error
    return seal
