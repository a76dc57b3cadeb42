"""The endpoint of a job: three protocols, fresh credentials, and nobody else's."""

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from exclave.runner.cloud.document import CloudDocument
from exclave.runner.jobs.context import JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import JobRun, StopRequest
from exclave.runner.jobs.identity import JobIdentity
from exclave.runner.jobs.role_variables import RUNNER_ONLY
from exclave.runner.jobs.workspace import Workspace, prepare_workspace
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.cell import NO_CELL
from exclave.wire.jobs import Reason
from exclave.wire.stacks import Cloud
from tests.unit.runner.cloud.cloud_kit import (
    ARN,
    ROLE,
    WISH,
    Site,
    make_dispatch,
    read_document,
)
from tests.unit.runner.work_kit import NO_UPLINK

EMAIL = "xc-1234567890-maintenance@customer.iam.gserviceaccount.com"
CLIENT = "11111111-2222-3333-4444-555555555555"
ARM = "https://management.azure.com/"


@dataclass
class Job:
    """A running job: its role, and what its commands see."""

    identity: JobIdentity
    env: Mapping[str, str]
    workspace: Workspace


def refer_to(reference: str) -> CloudDocument:
    return read_document(role_references={ROLE: reference})


@asynccontextmanager
async def run_job(site: Site, *, over: list[bool] | None = None) -> AsyncIterator[Job]:
    ended = over if over is not None else [False]
    dispatch = make_dispatch(dict(WISH))
    folder = site.folder / "execution"
    folder.mkdir(exist_ok=True)
    async with site.identities.open(dispatch, NO_CELL, site.log, lambda: ended[0]) as identity:
        assert identity is not None
        workspace = prepare_workspace(folder, keep_free_bytes=0)
        yield Job(identity, identity.prepare(workspace), workspace)


def read_audit(site: Site) -> str:
    return site.audit_file.read_text()


def look_at(file: str) -> os.stat_result:
    return Path(file).stat()


async def ask(url: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as http:
        return await http.get(url, headers=headers)


def read_token(job: Job) -> str:
    return Path(job.env["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]).read_text()


async def ask_as_job(job: Job) -> httpx.Response:
    token = read_token(job)
    return await ask(job.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"], Authorization=token)


async def test_a_job_of_aws_gets_the_keys_of_its_role(tmp_path: Path) -> None:
    site = Site(tmp_path)

    async with run_job(site) as job:
        reply = await ask_as_job(job)

    assert reply.json() == {
        "AccessKeyId": "AKIA1",
        "SecretAccessKey": "secret-1",
        "Token": "session-1",
        "Expiration": "2026-11-17T12:45:45Z",
    }
    (session,) = site.account.sessions
    assert (session.role, session.job) == (ARN, f"job_{'0' * 26}")
    assert session.tags["exclave:operation"] == "trigger"
    assert site.log.hidden == ["secret-1", "session-1", "token-1"]


async def test_a_role_for_emergencies_ends_in_the_midst_of_a_job(tmp_path: Path) -> None:
    site = Site(tmp_path, document=read_document(role_ends={ROLE: "2026-11-17T13:00:45Z"}))

    async with run_job(site) as job:
        before = await ask_as_job(job)
        site.clock.passed_s = 1800.0
        after = await ask_as_job(job)

    assert (before.status_code, after.status_code) == (200, 403)


@pytest.mark.parametrize("end", ["2026-11-17T12:30:45Z", "2000-01-01", "tomorrow", ""])
async def test_a_role_for_emergencies_whose_time_is_over_is_not_taken(
    tmp_path: Path, end: str
) -> None:
    site = Site(tmp_path, document=read_document(role_ends={ROLE: end}))

    with pytest.raises(WorkFailed) as failed:
        async with run_job(site):
            pass

    assert failed.value.outcome.reason is Reason.ROLE_DISABLED
    assert f"the time of the role `{ROLE}` is over" in failed.value.outcome.message


async def test_what_commands_see_holds_no_credential_and_closes_the_metadata(
    tmp_path: Path,
) -> None:
    async with run_job(Site(tmp_path)) as job:
        token = job.env["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]
        config = job.env["AWS_CONFIG_FILE"]

        assert not [name for name in job.env if "KEY" in name or "SESSION" in name]
        assert job.env["AWS_EC2_METADATA_DISABLED"] == "true"
        assert (job.env["AWS_REGION"], job.env["AWS_DEFAULT_REGION"]) == ("eu-west-1",) * 2
        assert look_at(token).st_mode & 0o777 == 0o400
        assert look_at(config).st_size == 0
        assert job.env["AWS_SHARED_CREDENTIALS_FILE"] == config


@pytest.mark.parametrize(
    ("cloud", "reference"), [(Cloud.AWS, ARN), (Cloud.GCP, EMAIL), (Cloud.AZURE, CLIENT)]
)
async def test_all_that_points_to_the_endpoint_is_the_runners_alone(
    tmp_path: Path, cloud: Cloud, reference: str
) -> None:
    async with run_job(Site(tmp_path, cloud, refer_to(reference))) as job:
        pointing = [name for name, text in job.env.items() if "127.0.0.1" in text]

    assert pointing
    assert set(pointing) <= RUNNER_ONLY
    secret = {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "IDENTITY_HEADER"}
    assert secret & job.env.keys() <= RUNNER_ONLY


async def test_the_variables_of_the_app_do_not_lead_commands_elsewhere(tmp_path: Path) -> None:
    site = Site(tmp_path)
    wanted = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/vendor",
        "AWS_EC2_METADATA_DISABLED": "false",
        "AWS_ACCESS_KEY_ID": "AKIAVENDOR",
        "AWS_REGION": "us-east-1",
    }

    async with run_job(site) as job:
        run = JobRun(make_dispatch(dict(WISH)), site.folder, NO_UPLINK, identity=job.identity)
        context = open_context(
            run,
            site.log,
            StopRequest(),
            clock=site.clock,
            children=ChildSettings(),
            limits=JobLimits(60.0, keep_free_bytes=0),
        )
        env = context.build_env(wanted)
        context.build_env(wanted)

    url = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
    assert (env[url], env["AWS_EC2_METADATA_DISABLED"]) == (job.env[url], "true")
    assert (env["AWS_ACCESS_KEY_ID"], env["AWS_REGION"]) == ("AKIAVENDOR", "us-east-1")
    said = [text for text in site.log.lines if text.startswith("warning")]
    names = [text.split("`")[1] for text in said]
    assert names == [url, "AWS_EC2_METADATA_DISABLED", "AWS_ACCESS_KEY_ID"]


async def test_a_wrong_path_or_token_is_refused(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with run_job(site) as job:
        url = job.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
        token = read_token(job)
        other = url[:-1] + ("0" if url[-1] != "0" else "1")
        replies = [
            await ask(other, Authorization=token),
            await ask(f"{url}?x=1", Authorization=token),
            await ask(url, Authorization="0" * 64),
            await ask(url),
        ]

    assert [reply.status_code for reply in replies] == [403] * 4
    assert site.account.sessions == []
    assert len(site.read_events("credential_refused")) == 1


async def test_what_opens_the_endpoint_of_a_job_opens_no_other_one(tmp_path: Path) -> None:
    site, other = Site(tmp_path), Site(tmp_path / "other")
    other.identities = site.identities
    async with run_job(site) as job, run_job(other) as neighbour:
        root = job.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"].rpartition("/")[0]
        path = neighbour.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"].rpartition("/")[2]
        token = read_token(neighbour)
        reply = await ask(f"{root}/{path}", Authorization=token)

    assert reply.status_code == 403


async def test_credentials_are_cached_and_never_handed_out_stale(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with run_job(site) as job:
        first = (await ask_as_job(job)).json()
        site.clock.passed_s = 480.0  # exactly 420 s are left
        again = (await ask_as_job(job)).json()
        site.clock.passed_s = 481.0
        fresh = (await ask_as_job(job)).json()

    assert (first["AccessKeyId"], again["AccessKeyId"]) == ("AKIA1", "AKIA1")
    assert (fresh["AccessKeyId"], fresh["Expiration"]) == ("AKIA2", "2026-11-17T12:53:46Z")
    issued = site.read_events("credential_issued")
    assert [entry["expires_at"] for entry in issued] == [
        "2026-11-17T12:45:45+00:00",
        "2026-11-17T12:53:46+00:00",
    ]
    assert "secret-1" not in read_audit(site)
    assert "secret-2" in site.log.hidden


async def test_nobody_answers_after_the_job(tmp_path: Path) -> None:
    async with run_job(Site(tmp_path)) as job:
        await ask_as_job(job)

    with pytest.raises(httpx.ConnectError):
        await ask_as_job(job)


async def test_a_job_that_may_not_act_any_more_gets_nothing(tmp_path: Path) -> None:
    over = [False]
    async with run_job(Site(tmp_path), over=over) as job:
        before = await ask_as_job(job)
        over[0] = True
        after = await ask_as_job(job)

    assert (before.status_code, after.status_code) == (200, 403)


async def test_a_cloud_that_refuses_is_in_the_log_of_the_job(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.account.is_down = True

    async with run_job(site) as job:
        reply = await ask_as_job(job)

    assert reply.status_code == 503
    assert "no credential of the job's role: STS does not answer" in site.log.lines


async def test_a_job_of_google_cloud_asks_like_a_machine(tmp_path: Path) -> None:
    site = Site(tmp_path, Cloud.GCP, refer_to(EMAIL))
    flavor = {"Metadata-Flavor": "Google"}

    async with run_job(site) as job:
        root = f"http://{job.env['GCE_METADATA_HOST']}"
        account = f"{root}/computeMetadata/v1/instance/service-accounts"
        replies = {
            "root": await ask(f"{root}/"),
            "project": await ask(f"{root}/computeMetadata/v1/project/project-id", **flavor),
            "email": await ask(f"{account}/default/email", **flavor),
            "account": await ask(f"{account}/default/?recursive=true", **flavor),
            "token": await ask(f"{account}/{EMAIL}/token", **flavor),
            "identity": await ask(f"{account}/default/identity?audience=x", **flavor),
            "other": await ask(f"{account}/runner@x/token", **flavor),
            "bare": await ask(f"{account}/default/token"),
            "forwarded": await ask(
                f"{account}/default/token", **flavor, **{"X-Forwarded-For": "1.1.1.1"}
            ),
        }

    codes = {name: reply.status_code for name, reply in replies.items()}
    assert [name for name, code in codes.items() if code == 404] == ["identity", "other"]
    assert [name for name, code in codes.items() if code == 403] == ["bare", "forwarded"]
    assert replies["root"].headers["Metadata-Flavor"] == "Google"
    assert (replies["project"].text, replies["email"].text) == ("customer", EMAIL)
    assert replies["account"].json()["email"] == EMAIL
    token = {"access_token": "token-1", "expires_in": 900, "token_type": "Bearer"}
    assert replies["token"].json() == token
    assert site.account.sessions[0].role == EMAIL


async def test_a_job_of_azure_gets_tokens_for_what_jobs_may_use(tmp_path: Path) -> None:
    site = Site(tmp_path, Cloud.AZURE, refer_to(CLIENT))

    async with run_job(site) as job:
        msi, app = job.env["ARM_MSI_ENDPOINT"], job.env["IDENTITY_ENDPOINT"]
        header = {"X-IDENTITY-HEADER": job.env["IDENTITY_HEADER"]}
        machine = await ask(f"{msi}?resource={ARM}&client_id={CLIENT}", Metadata="true")
        vault = await ask(f"{app}?resource=https://vault.azure.net", **header)
        scope = await ask(f"{app}?scope=https://vault.azure.net/.default", **header)
        directory = await ask(f"{app}?resource=https://graph.microsoft.com", **header)
        other = await ask(f"{msi}?resource={ARM}&client_id=other", Metadata="true")
        bare = await ask(f"{app}?resource={ARM}")
        no_flavor = await ask(f"{msi}?resource={ARM}")

    assert machine.json()["access_token"] == "token-1"
    assert machine.json()["expires_in"] == "900"
    assert vault.json()["access_token"] == scope.json()["access_token"] == "token-2"
    assert site.account.resources == [ARM, "https://vault.azure.net"]
    refused = (directory, other, bare, no_flavor)
    assert [reply.status_code for reply in refused] == [403] * 4
    assert (job.env["ARM_USE_MSI"], job.env["ARM_CLIENT_ID"]) == ("true", CLIENT)
    assert (job.env["ARM_TENANT_ID"], job.env["ARM_SUBSCRIPTION_ID"]) == ("tenant-1", "sub-1")


async def test_the_runner_acts_as_the_job_for_clusters_and_registries(tmp_path: Path) -> None:
    async with run_job(Site(tmp_path)) as job:
        access, secret, session = await job.identity.read_keys()
        token = await job.identity.read_token()

    assert (access, secret.reveal(), session and session.reveal()) == (
        "AKIA1",
        "secret-1",
        "session-1",
    )
    assert token.reveal() == "token-1"


@pytest.mark.parametrize(
    ("document", "role", "reason", "says"),
    [
        (read_document(), "nobody", Reason.ROLE_UNKNOWN, "the Stack has no role `nobody`"),
        (None, ROLE, Reason.ROLE_UNKNOWN, "the Stack has no role"),
        (read_document(), "admin", Reason.ROLE_DISABLED, "to switch it on: set Enableadmin"),
        (
            read_document(roles={"new": "true"}),
            "new",
            Reason.ROLE_UNKNOWN,
            "does not say what the role `new` is",
        ),
    ],
)
async def test_a_role_that_the_customer_does_not_give_is_refused_before_anything_runs(
    tmp_path: Path, document: CloudDocument | None, role: str, reason: Reason, says: str
) -> None:
    site = Site(tmp_path, document=document)
    dispatch = make_dispatch({"name": role, "operation": "deploy"})

    with pytest.raises(WorkFailed, match=says) as refused:
        async with site.identities.open(dispatch, NO_CELL, site.log, lambda: False):
            pass

    assert refused.value.reason is reason
    assert site.account.sessions == []


async def test_where_the_customer_lets_it_only_plan_nothing_is_changed(tmp_path: Path) -> None:
    site = Site(tmp_path, document=read_document(mode="plan-only"))
    changing = make_dispatch(dict(WISH), mutating=True)

    with pytest.raises(WorkFailed) as refused:
        async with site.identities.open(changing, NO_CELL, site.log, lambda: False):
            pass
    async with run_job(site) as job:
        looking = await ask_as_job(job)

    assert (refused.value.reason, looking.status_code) == (Reason.PLAN_ONLY, 200)


async def test_no_job_runs_where_jobs_can_reach_the_metadata(tmp_path: Path) -> None:
    site = Site(tmp_path, fault="jobs can reach the metadata server")

    with pytest.raises(WorkFailed) as refused:
        async with site.identities.open(make_dispatch(None), NO_CELL, site.log, lambda: False):
            pass

    assert refused.value.reason is Reason.METADATA_OPEN


async def test_a_job_without_a_role_has_no_endpoint(tmp_path: Path) -> None:
    site = Site(tmp_path)

    async with site.identities.open(
        make_dispatch(None), NO_CELL, site.log, lambda: False
    ) as identity:
        assert identity is None

    assert json.dumps(site.log.lines) == "[]"
