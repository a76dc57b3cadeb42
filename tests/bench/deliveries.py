"""What the platform adds to Terraform: parallel installs, and the time around one module."""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.bench.report import Measure, say
from tests.support.dev_server import DevServer, open_dev

WIDTH, DEPTH = 6, 5
SLEEP_S = 4
REPEATS = 5

_SOURCE = '[public_repo]\nrepo = "."\ndirectory = "{}"\n'
_MODULE = """
variable "seconds" {{ type = number }}

resource "terraform_data" "wait" {{
  input = timestamp()

  provisioner "local-exec" {{
    command = "sleep {}"
  }}
}}

output "id" {{ value = terraform_data.wait.id }}
"""


def measure_parallelism() -> Iterator[Measure]:
    """Install 30 components of known duration; compare with the longest way through the graph."""
    with _dev(CAPACITY="8") as site:
        _write_app(site.folder / "wide", WIDTH, DEPTH, SLEEP_S)
        _install(site, "wide")
        workflow = site.ask("workflows", "get", "acme")
        jobs = site.ask("jobs", "list", "--workflow", workflow["id"], "--limit", "500")["items"]
        took = _read_durations(site, jobs)
    wall = _span(workflow["created_at"], workflow["finished_at"])
    path = _find_longest(workflow["steps"], took)
    serial = sum(took.values())
    yield Measure(
        "install_parallelism",
        wall / path,
        "x",
        "<= 1.1",
        met=wall / path <= 1.1,
        baseline=serial / path,
        ratio=serial / wall,
        detail={
            "components": WIDTH * DEPTH,
            "wall_s": round(wall, 1),
            "critical_path_s": round(path, 1),
            "baseline_is": "the same jobs one after another",
            "serial_s": round(serial, 1),
        },
    )


def measure_overhead() -> Iterator[Measure]:
    """Deploy one module again and again; compare with bare init, plan and apply of the same."""
    with _dev() as site:
        app = site.folder / "one"
        _write_app(app, 1, 1, 0)
        bare = sorted(_run_bare(app / "module") for _ in range(REPEATS))[REPEATS // 2]
        _install(site, "one")
        walls = []
        for _ in range(REPEATS):
            site.run("installs", "deploy", "acme", "c0_0", "--wait")
            workflow = site.ask("workflows", "get", "acme")
            walls.append(_span(workflow["created_at"], workflow["finished_at"]))
    wall = sorted(walls)[REPEATS // 2]
    added = wall - bare
    yield Measure(
        "terraform_overhead",
        added,
        "s",
        "<= 1 s or 10 %",
        met=added <= max(1.0, 0.1 * bare),
        baseline=bare,
        ratio=wall / bare,
        detail={"wall_s": round(wall, 2), "baseline_is": "bare terraform init, plan, show, apply"},
    )


@contextmanager
def _dev(**env: str) -> Iterator[DevServer]:
    temporary = tempfile.TemporaryDirectory(prefix="exclave-bench-")
    with temporary as folder, open_dev(Path(folder), **env) as site:
        yield site


def _install(site: DevServer, app: str) -> None:
    say(f"  installing {app} …")
    site.ask("apps", "create", app)
    site.run("apps", "sync", app, "--wait")
    words = ("installs", "create", app, "--name", "acme", "--here", "--approve-all", "--wait")
    site.run(*words, timeout_s=900)


def _write_app(app: Path, width: int, depth: int, seconds: int) -> None:
    """Write an app in which each layer of components needs the one before it."""
    (app / "components").mkdir(parents=True)
    for name, sleep in (("module", seconds), ("base", 0)):
        (app / name).mkdir()
        (app / name / "main.tf").write_text(_MODULE.format(sleep))
    (app / "metadata.toml").write_text(
        'version = "v2"\ndisplay_name = "ExecutionHarness"\ndescription = "."\n'
    )
    (app / "runner.toml").write_text('runner_type = "local"\n')
    common = 'terraform_version = "1.11.0"\n{}[vars]\nseconds = "1"\n'
    (app / "sandbox.toml").write_text(common.format(_SOURCE.format("base")))
    for layer in range(depth):
        for row in range(width):
            needs = [f"c{layer - 1}_{other}" for other in range(width)] if layer else []
            head = f'name = "c{layer}_{row}"\ntype = "terraform_module"\ndependencies = '
            text = head + json.dumps(needs) + "\n" + common.format(_SOURCE.format("module"))
            (app / "components" / f"c{layer}_{row}.toml").write_text(text)


def _run_bare(module: Path) -> float:
    """Run Terraform by hand on a fresh copy; tell how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        shutil.copytree(module, work)
        config = Path(folder) / "empty.tfrc"
        config.write_text("")
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "TF_CLI_CONFIG_FILE": str(config),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
            "TF_VAR_seconds": "1",
        }
        began = time.perf_counter()
        for words in (["init"], ["plan", "-out=p"], ["show", "-json", "p"], ["apply", "p"]):
            argv = [
                "terraform",
                words[0],
                *(["-input=false"] if words[0] != "show" else []),
                *words[1:],
            ]
            subprocess.run(argv, cwd=work, env=env, check=True, capture_output=True)
        return time.perf_counter() - began


def _read_durations(site: DevServer, jobs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Read how long each step's job was at work on the runner."""
    took: dict[str, float] = {}
    for each in jobs:
        run = site.ask("jobs", "get", each["id"])["executions"][-1]
        took[each["step"]] = _span(run["started_at"], run["ended_at"])
    return took


def _find_longest(steps: Sequence[Mapping[str, Any]], took: Mapping[str, float]) -> float:
    """Find the longest way through the graph; steps are in an order that respects it."""
    ends: dict[str, float] = {}
    for step in steps:
        before = max((ends[need] for need in step["needs"]), default=0.0)
        ends[step["name"]] = before + took.get(step["name"], 0.0)
    return max(ends.values())


def _span(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
