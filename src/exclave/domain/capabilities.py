"""The job kinds that each type of runner accepts: only build runners see source code."""

from collections.abc import Mapping
from typing import Final

from exclave.domain.identity import QueueKind
from exclave.domain.jobs import JobKind

KINDS: Final[Mapping[QueueKind, frozenset[JobKind]]] = {
    QueueKind.BUILD: frozenset({JobKind.BUILD, JobKind.NOOP, JobKind.SCRIPT}),
    QueueKind.INSTALL: frozenset(JobKind) - {JobKind.BUILD},
}
