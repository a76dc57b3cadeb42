"""Whether the Services of a part had ready endpoints all the time while it was changed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from exclave.base.clock import Clock
from exclave.base.json_values import object_or_empty
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.rollouts.endpoints import Downtime, EndpointWatch
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason


@asynccontextmanager
async def count_endpoints(
    client: ClusterClient, clock: Clock, objects: Sequence[WantedObject]
) -> AsyncIterator[Callable[[], list[Downtime]]]:
    """Count the ready endpoints of the Services meanwhile; yields a function for the result."""
    services: dict[str, list[str]] = {}
    for entry in objects:
        is_service = (entry.id.group, entry.id.kind) == ("", "Service")
        if is_service and object_or_empty(entry.value.get("spec")).get("selector"):
            services.setdefault(entry.id.namespace, []).append(entry.id.name)
    watches = [
        EndpointWatch(client, clock, namespace, names) for namespace, names in services.items()
    ]
    tasks = [asyncio.create_task(watch.follow()) for watch in watches]
    try:
        yield lambda: [downtime for watch in watches for downtime in watch.summarize()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def check_downtime(
    downtimes: Sequence[Downtime], log: Callable[[str], None], *, is_refused: bool
) -> None:
    """Write the figures to the log; raise if there was a downtime and the app refuses any."""
    for downtime in downtimes:
        warning = "" if downtime.lowest else "warning: "
        log(warning + downtime.text)
    down = [downtime.text for downtime in downtimes if not downtime.lowest]
    if down and is_refused:
        raise WorkFailed(Reason.ROLLOUT_FAILED, "\n".join(down))
