"""Runs any number of seeds: `python -m tests.faults.interleaving --seeds 1000 --start 0`."""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.faults.interleaving.run import Report, run_seeds
from tests.support.databases import get_postgres

_TOGETHER = 250
"""Seeds that share a database."""


def main() -> int:
    """Run the seeds, print what broke and what was played."""
    parser = argparse.ArgumentParser(description="Interleave transactions of two servers.")
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes run seeds")
    parser.add_argument("--verbose", action="store_true", help="print who did what, in order")
    options = parser.parse_args()
    began = time.perf_counter()
    end = options.start + options.seeds
    parts = [
        range(first, min(first + _TOGETHER, end)) for first in range(options.start, end, _TOGETHER)
    ]
    counts: Counter[str] = Counter()
    turns, bad = 0, 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for report in pool.map(partial(_run, keep=options.verbose), parts):
            counts.update(report.counts)
            turns += report.turns
            bad += len(report.broken)
            _show(report)
    spent = time.perf_counter() - began
    print(
        f"{options.seeds} interleavings, {bad} broken promises, {turns} turns, "
        f"{options.seeds / spent:.1f} interleavings/s"
    )
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    return 1 if bad else 0


def _run(seeds: range, *, keep: bool = False) -> Report:
    """Run some seeds and stop their PostgreSQL: nothing else does when a worker process ends."""
    try:
        return run_seeds(seeds, keep=keep)
    finally:
        get_postgres().stop()
        get_postgres.cache_clear()


def _show(report: Report) -> None:
    for seed, trace in report.traces.items():
        print(f"seed {seed}:", *trace, sep="\n  ")
    print(*report.broken, sep="\n", end="\n" if report.broken else "")


if __name__ == "__main__":
    sys.exit(main())
