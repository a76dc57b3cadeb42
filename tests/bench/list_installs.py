"""What a person waits for who looks at ten thousand installs: a page, and a page of one label."""

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
from sqlalchemy import text

from exclave.control.deps import Deps
from exclave.control.orgs.accounts import create_org
from exclave.domain.identity import QueueKind
from exclave.main.composition import build_deps
from exclave.main.settings import ServerSettings
from exclave.storage.engine.database import Tx
from exclave.storage.tables import installs, work
from exclave.storage.tables.apps import apps, configs
from exclave.storage.tables.installs import app_installs, install_labels
from tests.bench.report import Measure, find_quantile, say
from tests.bench.servers import run_server
from tests.support.postgres import start_postgres

INSTALLS = 10_000
ROUNDS = 200
GOAL_MS = 20.0
QUERIES: Mapping[str, Mapping[str, str]] = {
    "page": {"limit": "100"},
    "last_page": {"limit": "100", "cursor": "{late}"},
    "label": {"limit": "100", "label": "customer=c-777"},
    "labels_and_state": {"limit": "100", "label": "tier=gold", "state": "active", "app": "bench"},
    "name": {"limit": "1", "name": "install-09876"},
}


def measure_sqlite() -> Iterator[Measure]:
    """Measure a server on a SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        yield _measure("list_installs_sqlite", Path(folder), f"sqlite:///{folder}/exclave.db")


def measure_postgres() -> Iterator[Measure]:
    """Measure a server on PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder:
        database = start_postgres(Path(folder) / "postgres")
        try:
            url = database.create_database("bench")
            yield _measure("list_installs_postgres", Path(folder) / "data", url)
        finally:
            database.stop()


def _measure(name: str, data: Path, url: str) -> Measure:
    token, late = _seed_all(data, url)
    with run_server(data, url) as server, _connect(server.control_port, token) as client:
        found, cpu = {}, {}
        for query, params in QUERIES.items():
            say(f"  {query}")
            filled = {key: value.replace("{late}", late) for key, value in params.items()}
            before = server.read_cpu()
            found[query] = _time(client, "/v1/installs", filled)
            cpu[f"{query}_cpu_ms"] = round((server.read_cpu() - before) * 1000 / ROUNDS, 2)
        baseline = find_quantile(_time(client, "/v1/whoami", {}), 0.5)
    p50 = max(find_quantile(each, 0.5) for each in found.values())
    return Measure(
        name,
        p50,
        "ms",
        f"slowest p50 < {GOAL_MS:g} ms",
        met=p50 < GOAL_MS,
        baseline=baseline,
        ratio=baseline / p50,
        detail={
            "installs": INSTALLS,
            "rounds": ROUNDS,
            **{
                f"{query}_p50_ms": round(find_quantile(each, 0.5), 2)
                for query, each in found.items()
            },
            **{
                f"{query}_p99_ms": round(find_quantile(each, 0.99), 2)
                for query, each in found.items()
            },
            **cpu,
            "baseline_is": "GET /v1/whoami",
        },
    )


@contextmanager
def _connect(port: int, token: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers) as client:
        yield client


def _time(client: httpx.Client, path: str, params: Mapping[str, str]) -> list[float]:
    took = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        client.get(path, params=dict(params)).raise_for_status()
        took.append((time.perf_counter() - begun) * 1000)
    return took


def _seed_all(data: Path, url: str) -> tuple[str, str]:
    deps = build_deps(ServerSettings(data=data, database=url))
    try:
        made = deps.db.write_now(lambda tx: _seed(tx, deps))
        # What PostgreSQL does by itself within a minute.
        deps.db.write_now(lambda tx: tx.run(text("ANALYZE")) and None)
        return made
    finally:
        deps.db.close()


def _seed(tx: Tx, deps: Deps) -> tuple[str, str]:
    made = create_org(tx, deps, "bench", "bench")
    org, by = {"org_id": made.id}, {"created_at": tx.now, "created_by": "bench"}
    app, config = deps.ids.new("app"), deps.ids.new("cfg")
    tx.insert_each(apps, [{**org, "id": app, "name": "bench", "config_id": config, **by}])
    tx.insert_each(
        configs,
        [
            {
                **org,
                "id": config,
                "app_id": app,
                "version": 1,
                "digest": "x",
                "archive": "x",
                "archive_digest": "x",
                "outline": {},
                **by,
            }
        ],
    )
    ids = sorted(deps.ids.new("ins") for _ in range(INSTALLS))
    labels = [
        {"tier": "gold" if at % 10 == 0 else "basic", "customer": f"c-{at % 1000}"}
        for at in range(INSTALLS)
    ]
    tx.insert_each(work.queues, [{**org, "id": i, "kind": QueueKind.INSTALL} for i in ids])
    tx.insert_each(
        installs.installs,
        [
            {
                **org,
                "id": install,
                "name": f"install-{at:05d}",
                "labels": labels[at],
                "created_at": tx.now,
            }
            for at, install in enumerate(ids)
        ],
    )
    tx.insert_each(
        install_labels,
        [
            {**org, "install_id": install, "key": key, "value": value}
            for at, install in enumerate(ids)
            for key, value in labels[at].items()
        ],
    )
    tx.insert_each(
        app_installs,
        [
            {
                **org,
                "install_id": install,
                "app_id": app,
                "config_id": config,
                "target": "local",
                "state": "active" if at % 3 else "failed",
                "approve_all": False,
                "here": False,
                "managed_by": "",
                "state_version": 1,
                "input_version": 1,
            }
            for at, install in enumerate(ids)
        ],
    )
    return made.token, ids[-101]
