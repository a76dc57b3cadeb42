"""Which kinds of jobs a runner may be given: source code is seen by build runners only."""

from collections.abc import Mapping
from typing import Final

from exclave.domain.identity import QueueKind
from exclave.domain.jobs import JobKind

KINDS: Final[Mapping[QueueKind, frozenset[JobKind]]] = {
    QueueKind.BUILD: frozenset({JobKind.BUILD, JobKind.NOOP, JobKind.SCRIPT}),
    QueueKind.INSTALL: frozenset(JobKind) - {JobKind.BUILD},
}
