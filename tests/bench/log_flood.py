"""A job that prints gigabytes, under a real runner: memory, disk, time, renewals.

Opt-in, because it takes minutes: `python -m tests.bench.log_flood 10` (GB). The bare time is that
of the same command, as nice as jobs are, with a pipe to `cat` that throws everything away.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exclave.runner.processes.child import NICENESS
from tests.bench.report import Measure, say, write_line
from tests.faults.site import KillableProcess, Site, open_site, wait_until

_LINE = (
    "2026-01-01T00:00:00Z level=info module.network.aws_subnet.private: still creating, 10s elapsed"
)
_ENDED = {"succeeded", "failed", "cancelled", "lost"}
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MIB = 1 << 20
_MOST_BYTES = 256 * _MIB
_LONGEST_SILENCE_S = 3.0


class Watch(threading.Thread):
    """Looks at the runner's process, its disk and its signs of life until it is told to stop."""

    def __init__(self, site: Site, runner: KillableProcess) -> None:
        super().__init__(daemon=True)
        self._site = site
        assert runner.running is not None
        self._pid = runner.running.pid
        self._over = threading.Event()
        self.memory = 0
        self.disk = 0
        self.gap_s = 0.0
        self.cpu_s = 0.0

    def run(self) -> None:
        """Look ten times a second."""
        seen, since = "", time.monotonic()
        while not self._over.wait(0.1):
            pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1])
            self.memory = max(self.memory, pages * _PAGE)
            self.disk = max(self.disk, _measure_folder(self._site.folder / "runner"))
            ticks = Path(f"/proc/{self._pid}/stat").read_text().rsplit(")")[1].split()[11:13]
            self.cpu_s = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
            (runner,) = self._site.get("/v1/runners")["items"]
            if runner["seen_at"] != seen:
                seen, since = runner["seen_at"], time.monotonic()
            self.gap_s = max(self.gap_s, time.monotonic() - since)

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()


def measure(gigabytes: float) -> Iterator[Measure]:
    """Run the flood bare, then as a job."""
    size = int(gigabytes * 1e9)
    script = f"yes '{_LINE}' | head -c {size}"
    began = time.monotonic()
    humble = f"echo {NICENESS} > /proc/self/autogroup; ({script}) | cat >/dev/null"
    words = ["nice", "-n", str(NICENESS), "sh", "-c", humble]
    subprocess.run(words, check=True, start_new_session=True)
    bare_s = time.monotonic() - began
    say(f"bare: {bare_s:.1f} s")
    with tempfile.TemporaryDirectory() as folder, open_site(Path(folder)) as site:
        yield from _measure_job(site, script, gigabytes, bare_s)


def _measure_job(site: Site, script: str, gigabytes: float, bare_s: float) -> Iterator[Measure]:
    assert site.runner is not None
    spec = {"kind": "script", "timeout_s": 7200, "steps": [{"name": "flood", "script": script}]}
    step = {"name": "flood", "needs": [], "mutating": False, "lanes": [], "job": spec}
    body = {"name": "flood", "queue_id": site.install, "steps": [step]}
    wait_until(lambda: site.get("/v1/runners")["items"], "the runner is there")
    watch = Watch(site, site.runner)
    watch.start()
    began = time.monotonic()
    workflow = site.post("/v1/workflows", body)["id"]
    job = _wait_for_end(site, workflow)
    spent = time.monotonic() - began
    watch.stop()
    (execution,) = job["executions"]
    facts = {
        "state": job["state"],
        "gigabytes": gigabytes,
        "log_mb": round(execution["log_bytes"] / 1e6, 1),
        "complete": execution["log_complete"],
        "memory_mib": watch.memory // _MIB,
        "disk_mib": watch.disk // _MIB,
        "cpu_s": round(watch.cpu_s, 1),
        "longest_silence_s": round(watch.gap_s, 2),
    }
    kept = job["state"] == "succeeded" and watch.memory <= _MOST_BYTES >= watch.disk
    met = kept and spent < 2 * bare_s and watch.gap_s < _LONGEST_SILENCE_S
    yield Measure(
        "log_flood",
        spent,
        "s",
        "twice the bare time, 256 MiB, signs of life kept",
        met=met,
        baseline=bare_s,
        ratio=bare_s / spent,
        detail=facts,
    )


def _wait_for_end(site: Site, workflow: str) -> dict[str, Any]:
    def ended() -> Any:
        found = site.get("/v1/jobs", workflow_id=workflow, limit=10)["items"]
        job = site.get(f"/v1/jobs/{found[0]['id']}") if found else {"state": ""}
        return job if job["state"] in _ENDED else None

    return dict(wait_until(ended, "the flood ends", 3600))


def _measure_folder(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).stat().st_blocks * 512
            except OSError:
                continue
    return total


if __name__ == "__main__":
    for one in measure(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0):
        print(write_line(one), flush=True)
