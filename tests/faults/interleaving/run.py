"""Runs scenarios: each seed is one scenario in one order of its statements."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.faults.interleaving.checks import check_replies, check_rows, check_uploads
from tests.faults.interleaving.hooks import Rewrite
from tests.faults.interleaving.scenarios import SCENARIOS, Play
from tests.faults.interleaving.two_servers import TIMINGS, Scenario, TwoServers, open_servers


@dataclass(slots=True)
class Report:
    """What became of many seeds."""

    broken: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    traces: dict[int, list[str]] = field(default_factory=dict)


def run_seeds(
    seeds: Sequence[int],
    *,
    only: Play | None = None,
    rewrite: Rewrite | None = None,
    stop: bool = False,
    keep: bool = False,
) -> Report:
    """Run scenarios on a database of their own; with `stop` until the first that breaks."""

    async def main() -> Report:
        report = Report()
        pair = await opening.start()
        for seed in seeds:
            play = only or SCENARIOS[seed % len(SCENARIOS)]
            broken = await _run_one(pair, seed, play, report)
            if keep:
                report.traces[seed] = list(pair.scheduler.trace)
            report.broken += [f"seed {seed}, {play.__name__}: {each}" for each in broken]
            if broken and stop:
                report.traces[seed] = list(pair.scheduler.trace)
                break
        return report

    with _quiet(), open_servers(rewrite) as opening:
        return asyncio.run(main())


async def _run_one(pair: TwoServers, seed: int, play: Play, report: Report) -> list[str]:
    scenario = await pair.begin_scenario(seed)
    actors = await play(scenario)
    outcomes = await pair.scheduler.run(seed, actors)
    report.counts[play.__name__] += 1
    report.turns += len(pair.scheduler.trace)
    broken = check_rows(scenario) + check_replies(scenario, outcomes)
    broken += check_uploads(scenario, outcomes)
    await _settle(scenario)
    return broken + check_rows(scenario, settled=True)


async def _settle(scenario: Scenario) -> None:
    """Let what was never started be withdrawn."""
    scenario.advance(TIMINGS.offer_s + 1)
    await scenario.listen()


@contextmanager
def _quiet() -> Iterator[None]:
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(level)
