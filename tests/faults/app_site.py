"""A site whose control plane serves one app, with one install of it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.site import Site, clean_env, wait_until
from tests.support.command_line import run_exclave

ENDED = {"succeeded", "failed", "cancelled"}


@dataclass
class AppSite:
    """A site with a build runner, a synced app and an install whose runner does real work."""

    site: Site
    orphans: list[dict[str, Any]] = field(default_factory=list)
    """What people were told about after each loss."""

    def begin_app(self, name: str, app: Path, **builder: str) -> None:
        """Start the servers and a build runner with these settings; sync and build an app."""
        site = self.site
        site.begin_servers()
        queue = site.get("/v1/whoami")["org"]["build_queue_id"]
        site.start_runner("builder", queue, **builder)
        self.run_cli("apps", "create", name)
        self.run_cli("apps", "sync", str(app), "--wait")

    def begin_install(self, app: str, *, approve_all: bool = True, **runner: str) -> None:
        """Make an install, and start its runner with these settings."""
        site = self.site
        wish = {"name": "acme", "app": app, "approve_all": approve_all, "provision": False}
        site.install = site.post("/v1/installs", wish)["id"]
        site.runner = site.start_runner("runner", site.install, **runner)

    def deploy_all(self) -> None:
        """Deploy everything, with success."""
        shown = self.await_end(self.start_work("reprovision"))
        assert shown["state"] == "succeeded", shown

    def run_cli(self, *words: str) -> None:
        env = clean_env({"URL": self.site.balancers[0].url, "TOKEN": self.site.token})
        done = run_exclave(*words, folder=self.site.folder, env=env, timeout_s=120)
        assert done.returncode == 0, (words, done.stdout, done.stderr)

    def start_work(self, kind: str) -> str:
        path = f"/v1/installs/{self.site.install}/workflows"
        return str(self.site.post(path, {"kind": kind})["id"])

    def change_round(self, value: str) -> str:
        """Replace every resource of every component."""
        path = f"/v1/installs/{self.site.install}/inputs"
        return str(self.site.post(path, {"values": {"round": value}})["workflow"]["id"])

    def await_end(self, workflow: str, seconds: float = 180) -> dict[str, Any]:
        def ended() -> Any:
            shown = self.site.get(f"/v1/workflows/{workflow}")
            return shown if shown["state"] in ENDED else None

        return dict(wait_until(ended, f"workflow {workflow} ends", seconds))

    def list_jobs(self, workflow: str) -> list[dict[str, Any]]:
        listed = self.site.get("/v1/jobs", workflow_id=workflow, limit=200)["items"]
        return [self.site.get(f"/v1/jobs/{one['id']}") for one in listed]

    def list_states(self) -> dict[str, dict[str, Any]]:
        items = self.site.get(f"/v1/installs/{self.site.install}/tf-states")["items"]
        return {one["workspace"]: one for one in items if one["workspace"] != "sandbox"}

    def settle(self) -> list[str]:
        """Look at what lost applies left, as a person would, and release their lanes."""
        path = f"/v1/installs/{self.site.install}"
        self.orphans += self.site.get(f"{path}/orphans")["orphans"]
        lanes = self.site.get(path)["lanes"]
        blocked = [one["name"] for one in lanes if one["state"] == "needs_reconcile"]
        for lane in blocked:
            self.site.post(f"{path}/lanes/{lane}/release", {"reason": "the kill test looked"})
        return blocked
