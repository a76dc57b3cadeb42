"""Restarts the runner when the customer chooses another proxy or mirror: both are set at start."""

from collections.abc import Callable
from typing import Final

from exclave.runner.cloud.document import CloudDocument
from exclave.runner.executions.deps import Deps
from exclave.runner.loops.retiring import retire

_LOOK_EVERY_S: Final = 5.0


async def watch_network(
    deps: Deps, read_document: Callable[[], CloudDocument | None], used: CloudDocument | None
) -> None:
    """Stop the runner between jobs if what it uses is no longer what the document says.

    What started it starts it again.
    """
    while not _is_changed(read_document(), used):
        await deps.clock.sleep(_LOOK_EVERY_S)
    await retire(deps, "the runner uses another proxy or mirror from now on")
    deps.audit.write("network_changed")
    deps.signals.stopping.set()


def _is_changed(document: CloudDocument | None, used: CloudDocument | None) -> bool:
    now = ("", "") if document is None else (document.proxy, document.mirror)
    before = ("", "") if used is None else (used.proxy, used.mirror)
    return document is not None and now != before
