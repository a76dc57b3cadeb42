"""A runner on a machine of an emulated AWS: real processes, checked signatures, enforced rights."""

import asyncio
import json
import random
import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import httpx

from exclave.control.deps import Deps
from exclave.control.dispatch import runners
from exclave.control.workflows import jobs
from exclave.domain.identity import QueueId, User
from exclave.domain.jobs import JobId
from exclave.main.server import run_control_plane
from exclave.main.settings import ServerSettings
from exclave.wire.jobs import JobReply
from exclave.wire.roles import RoleWish
from exclave.wire.specs import ScriptSpec, ScriptStep
from tests.faults.site import clean_env
from tests.support.aws_emulator import ACCOUNT, REGION, Aws, Imds, start_aws, start_imds
from tests.support.world import job, make_install, make_org, run_workflow

RUNNER = "exclave-x-runner"
MACHINE = "i-0123456789abcdef0"
ROLE = "acme-maintenance"
OTHER = "acme-admin"
_EVERYTHING = [{"Effect": "Allow", "Action": "*", "Resource": "*"}]


def write_policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def name_role(role: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{role}"


@dataclass
class Account:
    """The customer's account: roles, the guard on them, the document and the seal."""

    aws: Aws
    guard: str = ""
    document: str = ""
    seal: str = ""

    def create(self) -> None:
        """Create what a Stack creates, as far as it concerns the runner."""
        iam = self.open("iam")
        self.aws.make_role(RUNNER)
        policy = write_policy({"Effect": "Deny", "Action": "iam:CreateUser", "Resource": "*"})
        made = iam.create_policy(PolicyName="exclave-x-guard", PolicyDocument=policy)
        self.guard = made["Policy"]["Arn"]
        rights = [
            {
                "Effect": "Allow",
                "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
                "Resource": name_role("acme-*"),
            },
            {
                "Effect": "Allow",
                "Action": ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"],
                "Resource": "*",
            },
        ]
        iam.put_role_policy(RoleName=RUNNER, PolicyName="p", PolicyDocument=write_policy(*rights))
        iam.attach_role_policy(RoleName=RUNNER, PolicyArn=self.guard)
        for role in (ROLE, OTHER):
            self.aws.make_role(role)
            iam.put_role_policy(
                RoleName=role, PolicyName="p", PolicyDocument=write_policy(*_EVERYTHING)
            )
            iam.attach_role_policy(RoleName=role, PolicyArn=self.guard)
        secrets = self.open("secretsmanager")
        self.seal = secrets.create_secret(Name="seal", SecretString="S" * 64)["ARN"]
        self.document = secrets.create_secret(Name="stack", SecretString="{}")["ARN"]
        self.say()

    def say(self, **changes: Any) -> None:
        """Write the document of the Stack."""
        document = {
            "format": 1,
            "install": "acme",
            "generator": "0.1.0",
            "digest": "d" * 64,
            "bundle": {},
            "enabled": "true",
            "mode": "full",
            "updates": "pinned",
            "proxy": "",
            "seal": self.seal,
            "log": "",
            "outputs": {
                "region": REGION,
                "account_id": ACCOUNT,
                "maintenance_iam_role_arn": name_role(ROLE),
                "break_glass_role_arns": {OTHER: name_role(OTHER)},
            },
            "roles": {ROLE: "true", OTHER: "false"},
            "secrets": {},
            "inputs_base64": {},
            "input_secrets": {},
            **changes,
        }
        text = json.dumps(document)
        with self.as_owner():
            self.open("secretsmanager").put_secret_value(SecretId=self.document, SecretString=text)

    def deny(self) -> None:
        """Deny everything to all roles of the Stack, as its kill switch does."""
        policy = write_policy({"Effect": "Deny", "Action": "*", "Resource": "*"})
        with self.as_owner():
            self.open("iam").create_policy_version(
                PolicyArn=self.guard, PolicyDocument=policy, SetAsDefault=True
            )

    @contextmanager
    def as_owner(self) -> Iterator[None]:
        """Do something as the customer, whose rights moto does not know."""
        self.aws.check_signatures(on=False)
        yield
        self.aws.check_signatures()

    def open(self, service: str) -> Any:
        return self.aws._open(service)


@dataclass
class CloudSite:
    """A control plane, an account, and a runner's process on a machine in it."""

    deps: Deps
    user: User
    queue: QueueId
    account: Account
    imds: Imds
    folder: Path
    runner: asyncio.subprocess.Process

    async def start(self, script: str, *, role: str = ROLE, mutating: bool = True) -> JobId:
        """Queue a script that runs with a role."""
        spec = ScriptSpec(
            steps=[ScriptStep(name="work", script=script)],
            env={"AWS_ENDPOINT_URL": self.account.aws.url},
            role=RoleWish(name=role, operation="deploy"),
            timeout_s=600.0,
        )
        lanes = ["component:x"] if mutating else []
        step = job("work", spec=spec, mutating=mutating, lanes=lanes)
        flow = await run_workflow(self.deps, self.user, self.queue, step)
        found = flow.steps[0].job_id
        assert found is not None
        return JobId(found)

    async def run(self, script: str, **options: Any) -> JobReply:
        """Run a script to its end."""
        return await self.wait_end(await self.start(script, **options))

    async def wait_end(self, found: JobId, tries: int = 1200) -> JobReply:
        for _ in range(tries):
            reply = await jobs.show_job(self.deps, self.user, found)
            if reply.finished_at is not None:
                return reply
            await asyncio.sleep(0.1)
        raise AssertionError(self.read_log())

    def read_log(self) -> str:
        """Return the end of what the runner logged."""
        return (self.folder / "runner.log").read_text()[-4000:]

    def read_audit(self, event: str) -> list[dict[str, Any]]:
        """Return the facts of the audit's entries of one kind."""
        file = self.folder / "runner" / "audit.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        entries = [json.loads(line) for line in lines]
        return [entry["facts"] for entry in entries if entry["event"] == event]


@asynccontextmanager
async def open_cloud_site() -> AsyncIterator[CloudSite]:
    """Start everything, and end it afterwards. Only root can: jobs are other users."""
    folder = _make_folder()
    try:
        with start_aws() as aws:
            account = Account(aws)
            account.create()
            with account.as_owner():
                keys = aws.assume(RUNNER, MACHINE)
            with start_imds(RUNNER, keys) as imds:
                async with _serve(folder, account, imds) as site:
                    yield site
    finally:
        shutil.rmtree(folder)


def _make_folder() -> Path:
    """Return a folder that other users get to."""
    folder = Path(mkdtemp(prefix="exclave-cloud-"))
    folder.chmod(0o755)
    return folder


@asynccontextmanager
async def _serve(folder: Path, account: Account, imds: Imds) -> AsyncIterator[CloudSite]:
    settings = ServerSettings(data=folder / "server", control_port=0, runner_port=0, attest="off")
    async with run_control_plane(settings) as plane:
        user = await make_org(plane.deps)
        queue = await make_install(plane.deps, user)
        made = await runners.create_enrolment(plane.deps, user, queue)
        async with httpx.AsyncClient(trust_env=False) as http:
            keys = (await http.get(f"{plane.runner_url}/v1/keys")).json()["keys"]
        boot = {
            "install": queue,
            "cloud": "aws",
            "runner_url": plane.runner_url,
            "keys": keys,
            "region": REGION,
            "document": account.document,
            "code": made.token,
        }
        file = folder / "boot.json"
        file.write_text(json.dumps(boot))
        runner = await _start_runner(folder, file, account, imds)
        try:
            yield CloudSite(plane.deps, user, queue, account, imds, folder, runner)
        finally:
            if runner.returncode is None:
                runner.terminate()
                await runner.wait()


async def _start_runner(
    folder: Path, boot: Path, account: Account, imds: Imds
) -> asyncio.subprocess.Process:
    first = random.randrange(20_000, 40_000, 8)
    env = clean_env(
        {
            "BOOT": str(boot),
            "RUNNER_DATA": str(folder / "runner"),
            "METADATA_URL": imds.url,
            "CLOUD_URL": account.aws.url,
            "RUN_AS": f"{first}-{first + 7}",
            "JOBS_FOLDER": str(folder / "jobs"),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
        }
    )
    argv: Sequence[str] = (sys.executable, "-m", "exclave", "runner")
    with (folder / "runner.log").open("ab") as out:
        return await asyncio.create_subprocess_exec(*argv, env=env, stdout=out, stderr=out)
