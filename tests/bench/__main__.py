"""`python -m tests.bench [measure]`: one JSON line per measure on stdout, talk on stderr."""

import sys
from collections.abc import Callable, Iterator

from tests.bench import (
    command_line,
    deliveries,
    dispatch_latency,
    idle_runners,
    image_sync,
    kill_switch,
    kubernetes_deliveries,
    list_installs,
    log_ingest,
    noisy_neighbour,
    sync_unchanged,
    workflow_rate,
)
from tests.bench.report import Measure, say, write_line

MEASURES: dict[str, Callable[[], Iterator[Measure]]] = {
    "workflow_rate_sqlite": workflow_rate.measure_sqlite,
    "workflow_rate_postgres": workflow_rate.measure_postgres,
    "log_ingest": log_ingest.measure,
    "dispatch_latency_sqlite": dispatch_latency.measure_sqlite,
    "dispatch_latency_postgres": dispatch_latency.measure_postgres,
    "dispatch_latency_postgres_two_servers": dispatch_latency.measure_two_servers,
    "idle_runners": idle_runners.measure,
    "list_installs_sqlite": list_installs.measure_sqlite,
    "list_installs_postgres": list_installs.measure_postgres,
    "cli_start": command_line.measure_start,
    "validate_large_app": command_line.measure_validate,
    "sync_unchanged": sync_unchanged.measure,
    "install_parallelism": deliveries.measure_parallelism,
    "terraform_overhead": deliveries.measure_overhead,
    "helm_overhead": kubernetes_deliveries.measure_helm,
    "manifest_overhead": kubernetes_deliveries.measure_manifest,
    "image_sync": image_sync.measure,
    "kill_switch": kill_switch.measure,
    "noisy_neighbour_sqlite": noisy_neighbour.measure_sqlite,
    "noisy_neighbour_postgres": noisy_neighbour.measure_postgres,
}


def main(wanted: list[str]) -> int:
    """Run the measures whose names begin with the wanted one; all without any."""
    only = wanted[0] if wanted else ""
    exact = {only: MEASURES[only]} if only in MEASURES else None
    chosen = exact or {name: run for name, run in MEASURES.items() if name.startswith(only)}
    if not chosen:
        say(f"there is no measure `{only}`; there are: {', '.join(MEASURES)}")
        return 2
    for name, run in chosen.items():
        say(f"{name} …")
        for measure in run():
            print(write_line(measure), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
