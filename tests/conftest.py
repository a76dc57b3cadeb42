"""For all tests: fixtures that many use, and interrupts.

What was started in the background ignores interrupts, and so would all that it starts.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.support.kubernetes"]
