"""For all tests: what was started in the background ignores interrupts, and so would all it starts."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
