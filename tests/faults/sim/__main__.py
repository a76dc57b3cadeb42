"""Runs any number of seeds: `python -m tests.faults.sim --seeds 1000 --start 0`."""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.faults.sim.run import Report, run_seed


def main() -> int:
    """Run the seeds, print what broke and what happened in all."""
    parser = argparse.ArgumentParser(description="Run simulated worlds with injected faults.")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes run seeds")
    parser.add_argument("--verbose", action="store_true", help="print the trace of each seed")
    options = parser.parse_args()
    began = time.perf_counter()
    seeds = range(options.start, options.start + options.seeds)
    counts: Counter[str] = Counter()
    virtual_s, bad = 0.0, 0
    with ProcessPoolExecutor(options.jobs) as pool:
        runs = map(run_seed, seeds) if options.jobs == 1 else pool.map(run_seed, seeds, chunksize=8)
        for report in runs:
            counts.update(report.counts)
            virtual_s += report.virtual_s
            bad += bool(report.broken)
            _show(report, verbose=options.verbose)
    spent = time.perf_counter() - began
    print(
        f"{options.seeds} seeds, {bad} bad, {options.seeds / spent:.1f} seeds/s, "
        f"{virtual_s / 3600:.0f} virtual hours"
    )
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    return 1 if bad else 0


def _show(report: Report, *, verbose: bool) -> None:
    if verbose:
        print("\n".join(report.lines))
        print(f"seed {report.seed} trace {report.digest}")
    if report.broken:
        print(report.explain())


if __name__ == "__main__":
    sys.exit(main())
