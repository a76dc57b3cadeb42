"""Runners that are root do each job as a user of its own: git, builds, all that Terraform does."""

import hashlib
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.e2e.stack_app import FILES, open_customer, open_vendor
from tests.support.git import make_repo, serve_git
from tests.support.tools import need_terraform

JOBS = Path("/var/lib/exclave/jobs")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others get to."""
    made = Path(mkdtemp(prefix="exclave-users-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@contextmanager
def open_repo(folder: Path) -> Iterator[dict[str, str]]:
    """Serve the component by git; answer the app's files that name it."""
    make_repo(folder / "git" / "public", {"db/main.tf": FILES["db/main.tf"]})
    with serve_git(folder / "git") as server:
        component = FILES["components/db.toml"]
        named = component.replace('repo = "."', f'repo = "{server.url}/public"\nbranch = "main"')
        yield {**FILES, "components/db.toml": named, "db/main.tf": "# not this one\n"}


def find_jobs(stack: Path) -> Path:
    """Return where the jobs of a Stack work: a folder named after that of its runner."""
    name = hashlib.sha256(str(stack.resolve() / "runner").encode()).hexdigest()[:12]
    return JOBS / name


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start jobs as other users")
def test_an_app_is_built_applied_and_destroyed_by_other_users(folder: Path) -> None:
    need_terraform()
    first = random.randrange(20_000, 40_000, 16)
    builder = {
        "RUN_AS": f"{first}-{first + 7}",
        "JOBS_FOLDER": str(folder / "builds"),
        "GIT_PROTOCOLS": "http",
        "GIT_ALLOW_PRIVATE": "true",
    }
    users = range(first + 8, first + 16)
    customers = {"EXCLAVE_RUN_AS": f"{users[0]}-{users[-1]}"}
    with (
        open_repo(folder) as files,
        open_vendor(folder, files, **builder) as vendor,
        open_customer(vendor, "acme", customers) as customer,
    ):
        customer.folder.chmod(0o777)
        (customer.folder / "gate").touch()

        deployed = customer.await_end(customer.start_work())

        assert deployed["state"] == "succeeded", customer.stack.read_log()
        assert len(customer.list_known()) == 2
        assert (customer.folder / "made").stat().st_uid in users
        destroyed = customer.await_end(customer.start_work("deprovision"))
        assert destroyed["state"] == "succeeded", customer.stack.read_log()
        assert customer.list_known() == {}
        jobs = find_jobs(customer.stack.stack)
        assert jobs.is_dir()
        customer.stack.run_script(customer.script, "--uninstall")
        assert not jobs.exists()
