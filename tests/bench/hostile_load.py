"""A hostile org at full rate: every attack in a thread of its own, again and again, until stdin ends.

Reads the addresses and the org's token from stdin as one JSON line. It has the last core to itself and
runs at the lowest priority, as attackers use the CPUs of other machines: what is measured is the
server, not the load generator's own need for CPU time.
"""

import json
import os
import sys
import threading
from collections import Counter

import httpx

from tests.support.attacks import ATTACKS, Attack
from tests.support.tenants import Tenant


def repeat(attack: Attack, tenant: Tenant, counts: Counter[str]) -> None:
    """Attack for ever; what the server refuses or resets is part of it."""
    while True:
        mine = tenant.clone()
        try:
            for status in attack(mine):
                counts[f"{attack.__name__} {status}"] += 1
        except (httpx.HTTPError, AssertionError, OSError, StopIteration):
            counts[f"{attack.__name__} refused"] += 1
        finally:
            mine.close()


def main() -> None:
    """Attack until stdin ends, then print how often each answer came."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.nice(19)
    tenant = Tenant(*json.loads(sys.stdin.readline()))
    counts: Counter[str] = Counter()
    for attack in ATTACKS:
        threading.Thread(target=repeat, args=(attack, tenant, counts), daemon=True).start()
    sys.stdin.readline()
    print(json.dumps(dict(sorted(counts.items()))), flush=True)
    os._exit(0)  # the threads are in the middle of requests


if __name__ == "__main__":
    main()
