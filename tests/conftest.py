"""For all tests: fixtures that many use, interrupts, and properties without time limits.

What was started in the background ignores interrupts, and so would all that it starts.
"""

import gc
import signal

from hypothesis import HealthCheck, settings

# What is imported and collected stays until the end: looking through it again and again for garbage
# takes a sixth of the time until the first test runs.
gc.disable()

# A busy machine must not fail a test: how long an example takes is not what properties are about.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.support.kubernetes"]


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but not in what was there before the first test."""
    gc.freeze()
    gc.enable()
