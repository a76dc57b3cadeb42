"""What a user waits for at the command line: its start, and the check of a large app."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.report import Measure
from tests.unit.appconfig.large import write_large_app

ROUNDS = 15
NOTHING = [sys.executable, "-c", "pass"]
EXCLAVE = [sys.executable, "-m", "exclave"]


def measure_start() -> Iterator[Measure]:
    """Measure `exclave --version`."""
    yield _judge("cli_start", [*EXCLAVE, "--version"], 150)


def measure_validate() -> Iterator[Measure]:
    """Measure `exclave apps validate` of an app of 60 components and 200 files."""
    with tempfile.TemporaryDirectory() as folder:
        app = Path(folder) / "large"
        write_large_app(app)
        yield _judge("validate_large_app", [*EXCLAVE, "apps", "validate", str(app)], 500)


def _judge(name: str, argv: Sequence[str], goal_ms: float) -> Measure:
    value, baseline = _time(argv), _time(NOTHING)
    return Measure(
        name,
        value,
        "ms",
        f"< {goal_ms:g} ms",
        met=value < goal_ms,
        baseline=baseline,
        ratio=value / baseline,
        detail={"rounds": ROUNDS, "baseline_is": "python -c pass"},
    )


def _time(argv: Sequence[str]) -> float:
    """Tell the median of some runs, in milliseconds."""
    took = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        subprocess.run(argv, check=True, capture_output=True)
        took.append((time.perf_counter() - begun) * 1000)
    return statistics.median(took)
