"""Storage quotas of an org, and the problems raised when they are exceeded."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from exclave.base.errors import Kind, Problem

_GIB = 1 << 30


class Stored(StrEnum):
    """Kinds of stored things whose bytes are counted per org."""

    REGISTRY = "registry"
    """Blobs and manifests of the registry, and what is set aside for uploads under way."""
    UPLOADS = "uploads"
    """Open uploads to the registry; their bytes count as `registry`."""
    ATTACHMENTS = "attachments"
    """Plans, journals and other files that executions hand in."""
    TF_STATES = "tf_states"
    """Versions of Terraform states."""
    CONFIGS = "configs"
    """Archives and parts of app config versions."""
    DOCUMENTS = "documents"
    """Versions of the inputs and the state of installs, and the steps of workflows."""
    LOGS = "logs"
    """Logs of executions, uncompressed."""


class Counted(StrEnum):
    """Kinds of rows that are counted when one is added."""

    INSTALLS = "installs"
    TOKENS = "tokens"
    ENROLMENTS = "enrolments"
    SCHEDULES = "schedules"
    WORKFLOWS = "workflows"


@dataclass(frozen=True, slots=True)
class Quotas:
    """Default limits per org; 0 means unlimited."""

    registry_bytes: int = 100 * _GIB
    """Bytes in the registry of an org, open uploads included."""
    uploads: int = 100
    """Open uploads to the registry of an org."""
    upload_bytes: int = 16 * _GIB
    """Bytes of one upload, and so of one blob of the registry."""
    attachments_bytes: int = 50 * _GIB
    """Bytes of plans, journals and other files that executions of an org handed in."""
    attachments_per_execution_bytes: int = 256 << 20
    """The same for one execution."""
    tf_states_bytes: int = 50 * _GIB
    """Bytes of Terraform states, all versions. Above it no workflow starts; running ones may
    store up to twice as much."""
    tf_states_per_execution_bytes: int = 4 * _GIB
    """Bytes of Terraform states that one execution stores."""
    configs_bytes: int = 20 * _GIB
    """Bytes of app config versions."""
    documents_bytes: int = 10 * _GIB
    """Bytes of the inputs and states of installs, all versions, and of the steps of workflows.
    Above it no workflow starts."""
    documents_per_install_bytes: int = 1 * _GIB
    """Bytes of the inputs and states of one install."""
    reports_per_hour: int = 12
    """Reports of one Stack per hour that change something; those that change nothing are free."""
    logs_bytes: int = 200 * _GIB
    """Bytes of logs, uncompressed. Above it no workflow starts; running ones go on logging."""
    installs: int = 10_000
    """Installs of an org."""
    tokens: int = 5_000
    """API tokens of an org that are neither expired nor revoked."""
    enrolments: int = 5_000
    """Enrolment tokens of an org that are neither expired nor used."""
    schedules: int = 20_000
    """Schedules of an org."""
    workflows: int = 20_000
    """Workflows of an org that have not ended."""


class QuotaExceeded(Problem):
    """The org has used up its quota."""

    kind: ClassVar = Kind.FULL
    code: ClassVar = "quota_exceeded"
    hint: ClassVar = (
        "`exclave orgs usage` shows what is used. Delete what is not needed any more, or ask the"
        " operator of the control plane for more."
    )


class DiskFull(Problem):
    """The disk is nearly full; the rest is reserved for the database."""

    kind: ClassVar = Kind.FULL
    code: ClassVar = "disk_full"
    hint: ClassVar = (
        "Ask the operator of the control plane to make room; then send it again. Small requests"
        " still work."
    )
