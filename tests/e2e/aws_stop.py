"""An apply that does not end by itself in an emulated AWS, and the customer who stops the Stack."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import boto3
from botocore.exceptions import ClientError

from tests.e2e.aws_life_site import Life
from tests.faults.site import wait_until
from tests.support.aws_stacks import AppliedTemplate
from tests.support.emulated_aws.server import ACCOUNT, REGION

_WITHIN_S = 150.0


def write_apply(folder: Path, *, is_stubborn: bool = False) -> str:
    """Return what an apply runs: it says which process it is, and goes on until it is ended.

    A stubborn one leaves Terraform's reach and cannot be asked to end.
    """
    begin = f"echo $$ > {_name_pid_file(folder)}"
    if is_stubborn:
        return f"setsid sh -c 'trap : INT TERM; {begin}; while :; do sleep 1; done'"
    return f"{begin}; exec sleep 600"


@dataclass
class RunningApply:
    """An apply in progress, its machine's rights, and the Stack."""

    life: Life
    stack: AppliedTemplate
    made: Any
    """The install, as it was created."""
    process: int
    began: float = 0.0
    refused_s: list[float] = field(default_factory=list)
    """When the machine could not take a role on any more, once that is so."""

    def stop_stack(self) -> None:
        """Set the parameter, as the customer does."""
        self.began = time.monotonic()
        with self.life.as_customer():
            self.stack.update(RunnerEnabled="false")

    def wait_until_ended(self) -> float:
        """Return how long after the stop the apply's process was gone."""
        place = Path("/proc") / str(self.process)
        wait_until(lambda: not place.exists(), "the apply ends", _WITHIN_S)
        return time.monotonic() - self.began

    def wait_until_reported(self) -> tuple[dict[str, Any], float]:
        """Return the job of the apply as the vendor sees it in the end, and when that was."""
        ended = self.life.app.await_end(self.made["workflow_id"])
        took_s = time.monotonic() - self.began
        jobs = self.life.app.list_jobs(ended["id"])
        (job,) = [job for job in jobs if job["state"] != "succeeded"]
        return job, took_s

    def take_role(self) -> None:
        """Take a role of the app on with the machine's own credentials, as a thief would."""
        keys = self.life.keys
        assert keys is not None
        assert keys.session_token is not None
        client = boto3.client(
            "sts",
            endpoint_url=self.life.aws.url,
            region_name=REGION,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key.reveal(),
            aws_session_token=keys.session_token.reveal(),
        )
        role = f"arn:aws:iam::{ACCOUNT}:role/{self.made['id']}-provision"
        client.assume_role(RoleArn=role, RoleSessionName="exclave-x", SourceIdentity="job_x")

    @contextmanager
    def try_roles(self) -> Iterator[None]:
        """Try to take a role on all the time, until that is refused."""
        ended = Event()

        def go_on() -> None:
            while not ended.wait(0.2):
                try:
                    self.take_role()
                except ClientError:
                    self.refused_s.append(time.monotonic() - self.began)
                    return

        thread = Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextmanager
def start_apply(life: Life, *, hurried: bool) -> Iterator[RunningApply]:
    """Create an install and its Stack, and wait until its first apply is under way."""
    made = life.create_install()
    stack = life.apply_stack()
    file = _name_pid_file(life.folder)
    with life.start_machine(hurried=hurried):
        wait_until(lambda: file.exists() and file.read_text().strip(), "the apply begins", 120)
        yield RunningApply(life, stack, made, int(file.read_text()))


def _name_pid_file(folder: Path) -> Path:
    return folder / "apply.pid"
