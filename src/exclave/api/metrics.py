"""Metrics in Prometheus' text format: counted at the edge, totals read once per scrape."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from exclave import __version__
from exclave.api.lag import LoopMonitor
from exclave.control.metrics import Totals

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request that was answered."""

    api: str
    method: str
    route: str
    status: int
    seconds: float


class Metrics:
    """All metrics of one process; both APIs may share it, so that `/metrics` shows both."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "exclave_http_requests",
            "Requests by route and status.",
            ["api", "method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "exclave_http_request_seconds",
            "How long requests took, long polls included.",
            ["api", "method", "route"],
            registry=registry,
            buckets=_BUCKETS,
        )
        self._lag = Histogram(
            "exclave_loop_lag_seconds",
            "How long the event loop was held up, ten times a second.",
            registry=registry,
            buckets=_BUCKETS,
        )
        self.loop = LoopMonitor(self._lag.observe)
        self._jobs = _gauge(registry, "exclave_jobs", "Jobs that have not ended.", "state")
        self._runners = _gauge(registry, "exclave_runners", "Runners by presence.", "presence")
        self._chores = {
            name: _gauge(registry, f"exclave_chore_{name}", text, "chore")
            for name, text in _CHORES.items()
        }
        self._stored = _gauge(
            registry, "exclave_stored_bytes", "Bytes that all orgs have stored.", "kind"
        )
        self._totals = {
            name: _gauge(registry, f"exclave_{name}", text) for name, text in _TOTALS.items()
        }
        _gauge(registry, "exclave_build_info", "The running version.", "version").labels(
            __version__
        ).set(1)

    def note(self, visit: Visit) -> None:
        """Count a request."""
        self._requests.labels(visit.api, visit.method, visit.route, str(visit.status)).inc()
        self._seconds.labels(visit.api, visit.method, visit.route).observe(visit.seconds)

    def render(self, totals: Totals) -> bytes:
        """Return all metrics as text, with the given totals."""
        for state, count in totals.jobs.items():
            self._jobs.labels(state).set(count)
        for presence, count in totals.runners.items():
            self._runners.labels(presence).set(count)
        for chore, tally in totals.chores.items():
            for name in ("runs", "failures", "rows_failed", "seconds"):
                self._chores[name].labels(chore).set(getattr(tally, name))
            if tally.succeeded_at is not None:
                self._chores[_SUCCESS].labels(chore).set(tally.succeeded_at.timestamp())
        for kind, size in totals.stored_bytes.items():
            self._stored.labels(kind).set(size)
        for name, gauge in self._totals.items():
            gauge.set(getattr(totals, name))
        return generate_latest(self._registry)


_SUCCESS = "last_success_timestamp_seconds"
_CHORES = {
    "runs": "Rounds of a background chore that this server began.",
    "failures": "Rounds of a chore that ended with an error.",
    "rows_failed": "Rows that a chore could not work off, while it did the others.",
    "seconds": "Seconds that the rounds of a chore took.",
    _SUCCESS: "When a chore last ended a round without an error.",
}
"""The metrics of each background task."""
_TOTALS = {
    "workflows_running": "Workflows that have not ended.",
    "polls_open": "Long polls that this server holds.",
    "rate_refusals": "Requests that this server refused because of a rate limit.",
    "worker_calls_waiting": "Calls that wait for a worker process of this server.",
    "worker_calls_running": "Calls that run in worker processes of this server.",
    "worker_calls": "Calls that this server has given to worker processes.",
    "worker_seconds": "Seconds that those calls took.",
    "worker_kills": "Worker processes that were ended in the middle of a call.",
    "disk_free_bytes": "Free bytes of the data folder's disk; 0 if nothing is kept there.",
    "disk_reserve_bytes": "Bytes of it that large writes leave to the database.",
    "runner_log_backlog_bytes": "Log bytes that runners have yet to upload.",
    "runner_results_waiting": "Results that runners have not delivered yet.",
    "runner_envelopes_refused": "Envelopes that runners refused since their start.",
    "runner_jobs_finished": "Jobs that runners finished since their start.",
}
"""Fields of `Totals` that are one number."""


def _gauge(registry: CollectorRegistry, name: str, text: str, *labels: str) -> Gauge:
    return Gauge(name, text, labels, registry=registry)
