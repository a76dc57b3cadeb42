"""Tuning of the garbage collector, so that long-lived objects are scanned rarely."""

import gc

from exclave.base.clock import Clock

FREEZE_S = 5.0
LOOK_AT_ALL_S = 3600.0


async def keep_young(clock: Clock) -> None:
    """Freeze surviving objects periodically, so that the collector does not scan them.

    Ten thousand parked polls are a million objects, none of them garbage; scanning them took
    most of a second, every few seconds. They are freed without the collector when they end.
    Cycles that were frozen before they became garbage are found by a full scan once an hour.
    """
    looked_at = clock.monotonic()
    while True:
        if clock.monotonic() - looked_at >= LOOK_AT_ALL_S:
            looked_at = clock.monotonic()
            gc.unfreeze()
            gc.collect()
        else:
            gc.collect(1)
        gc.freeze()
        await clock.sleep(FREEZE_S)
