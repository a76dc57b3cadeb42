"""How long the customer's kill switch takes on an emulated AWS, from the change to the last act."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.report import Measure, say
from tests.e2e.aws_life_site import open_life
from tests.e2e.aws_stop import RunningApply, start_apply, write_apply

GOAL_S = 120.0


def measure() -> Iterator[Measure]:
    """Stop an apply that ends when it is asked to, and one that has to be killed."""
    yield _measure("kill_switch", is_stubborn=False)
    yield _measure("kill_switch_stubborn", is_stubborn=True)


def _measure(name: str, *, is_stubborn: bool) -> Measure:
    """Stop with the timings of production; what CloudFormation itself takes is not in it."""
    with tempfile.TemporaryDirectory(prefix="exclave-bench-") as made:
        folder = Path(made)
        apply = write_apply(folder, is_stubborn=is_stubborn)
        with (
            open_life(folder, apply, timings={}) as life,
            start_apply(life, hurried=False) as running,
        ):
            say("  an apply runs; stopping …")
            return _stop(name, running)


def _stop(name: str, running: RunningApply) -> Measure:
    with running.try_roles():
        running.stop_stack()
        ended_s = running.wait_until_ended()
    _, reported_s = running.wait_until_reported()
    (refused_s,) = running.refused_s
    slowest = max(ended_s, refused_s)
    return Measure(
        name,
        slowest,
        "s",
        f"<= {GOAL_S:g} s until the apply has ended and no role can be taken on",
        met=slowest <= GOAL_S,
        detail={
            "apply_ended_s": round(ended_s, 2),
            "roles_refused_s": round(refused_s, 2),
            "vendor_told_s": round(reported_s, 2),
        },
    )
