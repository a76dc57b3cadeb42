"""The customer's secrets in the stores of clouds, and the seal key that is made of one."""

import base64
import json
import shlex
from pathlib import Path

import pytest

from exclave.base.ids import SeededRandomness
from exclave.base.json_values import Json
from exclave.base.secrets import Secret
from exclave.runner.cloud.accounts import Caller, CloudAccount, RoleSession, SecretDenied
from exclave.runner.cloud.advice import Advice
from exclave.runner.cloud.azure import AzureAccount
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.cloud.gcp import GcpAccount, GcpAddresses
from exclave.runner.cloud.imds import AzureMetadata, GcpMetadata
from exclave.runner.cloud.seal import derive_seal_key, prepare_seal_key
from exclave.runner.cloud.stores import CloudSecrets
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.sealing import SEAL_KEY
from exclave.wire.jobs import Reason
from exclave.wire.stacks import Cloud
from tests.support.scripted_api import Reply, ScriptedApi, say
from tests.unit.runner.cloud.cloud_kit import (
    INSTALL,
    FakeAccount,
    StepClock,
    read_document,
)

PLACE = "projects/customer/secrets/xc-db"
VAULT = "/secrets/xc-db"
TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"
AZURE_TOKEN = "/metadata/identity/oauth2/token"
GOOGLE_MACHINE = {TOKEN: [say({"access_token": "m", "expires_in": 3600})]}
AZURE_MACHINE = {AZURE_TOKEN: [say({"access_token": "m", "expires_on": "1900000000"})]}


def make_caller() -> Caller:
    return Caller(StepClock(), SeededRandomness(1))


def make_google(cloud: ScriptedApi) -> GcpAccount:
    addresses = GcpAddresses(cloud.url, cloud.url)
    return GcpAccount(make_caller(), GcpMetadata(StepClock(), cloud.url), addresses)


def make_azure(cloud: ScriptedApi) -> AzureAccount:
    return AzureAccount("runner-id", make_caller(), AzureMetadata(StepClock(), cloud.url))


def hold(text: str) -> Reply:
    return say({"payload": {"data": base64.b64encode(text.encode()).decode()}})


def make_store(account: CloudAccount, *, is_writable: bool = False) -> CloudSecrets:
    document = read_document(secrets={"db": "db-arn", "key": "key-arn"}, input_secrets={"in": "in"})
    advice = Advice(Cloud.AWS, lambda: document)
    return CloudSecrets(account, lambda: document, advice.advise_secret, is_writable=is_writable)


async def test_the_values_that_the_customer_gave_are_fetched_by_name() -> None:
    account = FakeAccount(StepClock(), texts={"db-arn": "hush", "in": "sensitive"})
    store = make_store(account)

    fetched = await store.fetch(["db", "stack-input-in"])

    assert {name: value.reveal() for name, value in fetched.items()} == {
        "db": "hush",
        "stack-input-in": "sensitive",
    }
    assert await store.list_names() == {"db", "stack-input-in"}
    assert await store.list_versions() == {"db": "1", "stack-input-in": "1"}


@pytest.mark.parametrize("value", ["", " ", "\n"])
async def test_a_blank_secret_was_not_given_and_the_error_names_the_command(value: str) -> None:
    store = make_store(FakeAccount(StepClock(), texts={"db-arn": value}))

    with pytest.raises(WorkFailed) as missing:
        await store.fetch(["db"])

    assert missing.value.reason is Reason.SECRET_MISSING
    assert "aws secretsmanager put-secret-value --region eu-west-1 --secret-id db-arn" in str(
        missing.value
    )
    assert await store.list_names() == frozenset()


async def test_a_secret_that_the_stack_lacks_needs_a_newer_stack() -> None:
    with pytest.raises(WorkFailed, match="run the newest version of the Stack"):
        await make_store(FakeAccount(StepClock())).fetch(["other"])


async def test_in_aws_only_the_customer_changes_secrets() -> None:
    account = FakeAccount(StepClock())
    store = make_store(account)

    with pytest.raises(WorkFailed) as refused:
        await store.put("db", Secret("x"))

    assert refused.value.reason is Reason.SECRET_READ_ONLY
    assert await store.put_missing("db", Secret("x")) is False
    assert account.texts == {}


async def test_elsewhere_the_runner_stores_what_it_generates_once() -> None:
    account = FakeAccount(StepClock())
    store = make_store(account, is_writable=True)

    first = await store.put_missing("db", Secret("one"))
    second = await store.put_missing("db", Secret("two"))
    await store.put("key", Secret("three"))

    assert (first, second) == (True, False)
    assert account.texts == {"db-arn": "one", "key-arn": "three"}


async def test_a_secret_that_may_not_be_read_is_said_to_be_so() -> None:
    account = FakeAccount(StepClock(), denied=True)

    with pytest.raises(WorkFailed) as refused:
        await make_store(account).fetch(["db"])

    assert refused.value.reason is Reason.ACCESS_DENIED


async def test_google_cloud_keeps_versions() -> None:
    versions = {"versions": [{"name": f"{PLACE}/versions/{n}"} for n in (10, 9, 2)]}
    script = {
        **GOOGLE_MACHINE,
        f"/v1/{PLACE}/versions": [say(versions)],
        f"/v1/{PLACE}/versions/latest:access": [hold("new")],
        f"/v1/{PLACE}/versions/2:access": [hold("old")],
        f"/v1/{PLACE}:addVersion": [say({})],
    }
    async with ScriptedApi(script) as cloud:
        account = make_google(cloud)
        newest = await account.read_secret(PLACE)
        oldest = await account.read_oldest(PLACE)
        version = await account.has_secret(PLACE)
        await account.write_secret(PLACE, Secret("x"))

    assert (newest and newest.reveal(), oldest and oldest.reveal()) == ("new", "old")
    assert version == "10"
    sent = json.loads(cloud.seen[-1].body)
    assert base64.b64decode(sent["payload"]["data"]) == b"x"
    assert cloud.seen[-1].headers["authorization"] == "Bearer m"
    assert cloud.count("GET", TOKEN) == 1


async def test_a_secret_of_google_cloud_without_a_version_was_not_given() -> None:
    message = f"Secret [{PLACE}] not found or has no versions/latest: versions/latest"
    missing = say({"error": {"status": "NOT_FOUND", "message": message}}, 404)
    script = {
        **GOOGLE_MACHINE,
        f"/v1/{PLACE}/versions": [say({})],
        f"/v1/{PLACE}/versions/latest:access": [missing],
    }
    async with ScriptedApi(script) as cloud:
        account = make_google(cloud)

        assert await account.read_secret(PLACE) is None
        assert await account.read_oldest(PLACE) is None
        assert await account.has_secret(PLACE) == ""


async def test_a_disabled_account_of_google_cloud_means_stop_and_a_new_token_is_tried() -> None:
    latest = f"/v1/{PLACE}/versions/latest:access"
    disabled = say({"error": {"status": "UNAUTHENTICATED"}}, 401)
    async with ScriptedApi({**GOOGLE_MACHINE, latest: [disabled, hold("back")]}) as cloud:
        account = make_google(cloud)
        with pytest.raises(SecretDenied):
            await account.read_secret(PLACE)

        value = await account.read_secret(PLACE)

    assert value is not None
    assert value.reveal() == "back"
    assert cloud.count("GET", TOKEN) == 2


async def test_a_role_of_google_cloud_is_taken_on_for_a_quarter_of_an_hour() -> None:
    path = "/v1/projects/-/serviceAccounts/r@p:generateAccessToken"
    token = say({"accessToken": "t", "expireTime": "2026-11-17T12:45:45Z"})
    async with ScriptedApi({**GOOGLE_MACHINE, path: [token]}) as cloud:
        credential = await make_google(cloud).assume_role(RoleSession("r@p", "exe", "job"))

    assert credential.token is not None
    assert credential.token.reveal() == "t"
    assert json.loads(cloud.seen[-1].body)["lifetime"] == "900s"


async def test_azure_keeps_secrets_in_a_vault() -> None:
    async with ScriptedApi({}) as cloud:
        versions = [
            _version(cloud, "b", 20, enabled=True),
            _version(cloud, "a", 10, enabled=True),
            _version(cloud, "off", 5, enabled=False),
        ]
        cloud.answer(
            {
                **AZURE_MACHINE,
                VAULT: [say({"value": "new"})],
                f"{VAULT}/versions": [say({"value": versions})],
                f"{VAULT}/a": [say({"value": "old"})],
            }
        )
        account = make_azure(cloud)
        place = f"{cloud.url}{VAULT}"
        newest = await account.read_secret(place)
        oldest = await account.read_oldest(place)
        version = await account.has_secret(place)
        await account.write_secret(place, Secret("x"))

    assert (newest and newest.reveal(), oldest and oldest.reveal()) == ("new", "old")
    assert version == "b"
    assert (cloud.seen[-1].method, json.loads(cloud.seen[-1].body)) == ("PUT", {"value": "x"})
    asked = [seen.target for seen in cloud.seen if seen.path == AZURE_TOKEN]
    assert "client_id=runner-id" in asked[0]


def _version(cloud: ScriptedApi, name: str, created: int, *, enabled: bool) -> Json:
    facts: Json = {"enabled": enabled, "created": created}
    return {"id": f"{cloud.url}{VAULT}/{name}", "attributes": facts}


async def test_a_secret_of_azure_that_is_not_there_was_not_given() -> None:
    missing = say({"error": {"code": "SecretNotFound"}}, 404)
    script = {**AZURE_MACHINE, VAULT: [missing], f"{VAULT}/versions": [missing]}
    async with ScriptedApi(script) as cloud:
        account = make_azure(cloud)

        assert await account.read_secret(f"{cloud.url}{VAULT}") is None
        assert await account.has_secret(f"{cloud.url}{VAULT}") == ""


async def test_a_vault_that_refuses_means_that_the_customer_wants_it() -> None:
    refused = say({"error": {"code": "Forbidden", "innererror": {"code": "ForbiddenByRbac"}}}, 403)
    async with ScriptedApi({**AZURE_MACHINE, VAULT: [refused]}) as cloud:
        with pytest.raises(SecretDenied):
            await make_azure(cloud).read_secret(f"{cloud.url}{VAULT}")


async def test_an_overloaded_cloud_is_asked_three_times() -> None:
    busy, fine = say({}, 503), hold("at last")
    path = f"/v1/{PLACE}/versions/latest:access"
    async with ScriptedApi({**GOOGLE_MACHINE, path: [busy, busy, fine]}) as cloud:
        value = await make_google(cloud).read_secret(PLACE)
    async with ScriptedApi({**GOOGLE_MACHINE, path: [busy]}) as cloud:
        with pytest.raises(CloudRefused) as refused:
            await make_google(cloud).read_secret(PLACE)

    assert value is not None
    assert not isinstance(refused.value, SecretDenied)
    assert cloud.count("GET", path) == 3


async def test_azure_gives_jobs_no_tokens_for_the_directory() -> None:
    async with ScriptedApi(AZURE_MACHINE) as cloud:
        session = RoleSession("role-id", "exe", "job")
        with pytest.raises(CloudRefused):
            await make_azure(cloud).assume_role(session, "https://graph.microsoft.com")

    assert cloud.seen == []


async def test_the_same_secret_makes_the_same_seal_key_on_every_machine(tmp_path: Path) -> None:
    account = FakeAccount(StepClock(), texts={"seal": "S" * 64})
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        await prepare_seal_key(
            account, "seal", INSTALL, tmp_path / name, SeededRandomness(1), is_writable=False
        )

    first, second = (_read(tmp_path / name) for name in ("one", "two"))
    assert first == second == [derive_seal_key(Secret("S" * 64), INSTALL).hex()]
    assert (tmp_path / "one" / SEAL_KEY).stat().st_mode & 0o777 == 0o600
    assert derive_seal_key(Secret("S" * 64), "ins_other").hex() not in first


def _read(data: Path) -> list[str]:
    return (data / SEAL_KEY).read_text().split()


async def test_an_older_seal_key_still_opens_what_it_sealed(tmp_path: Path) -> None:
    (tmp_path / SEAL_KEY).write_text("ab" * 32 + "\n")
    account = FakeAccount(StepClock(), texts={"seal": "S"})

    for _ in range(2):
        await prepare_seal_key(
            account, "seal", INSTALL, tmp_path, SeededRandomness(1), is_writable=False
        )

    assert _read(tmp_path) == [derive_seal_key(Secret("S"), INSTALL).hex(), "ab" * 32]


async def test_where_the_stack_makes_no_seal_the_runner_does_it_once(tmp_path: Path) -> None:
    account = FakeAccount(StepClock())

    await prepare_seal_key(
        account, "seal", INSTALL, tmp_path, SeededRandomness(1), is_writable=True
    )
    drawn = account.texts["seal"]
    await prepare_seal_key(
        account, "seal", INSTALL, tmp_path, SeededRandomness(2), is_writable=True
    )

    assert len(drawn) == 64
    assert account.texts["seal"] == drawn
    with pytest.raises(CloudRefused, match="has no value"):
        await prepare_seal_key(
            FakeAccount(StepClock()),
            "seal",
            INSTALL,
            tmp_path,
            SeededRandomness(1),
            is_writable=False,
        )


@pytest.mark.parametrize(
    ("cloud", "reference", "words"),
    [
        (Cloud.AWS, "arn:x", ["aws", "secretsmanager", "put-secret-value", "--region"]),
        (Cloud.GCP, PLACE, ["gcloud", "secrets", "versions", "add", "xc-db", "--project"]),
        (
            Cloud.AZURE,
            "https://acme.vault.azure.net/secrets/db",
            ["az", "keyvault", "secret", "set", "--vault-name", "acme", "--name", "db"],
        ),
    ],
)
def test_the_customer_gets_a_command_to_paste(
    cloud: Cloud, reference: str, words: list[str]
) -> None:
    advice = Advice(cloud, lambda: read_document(secrets={"db": reference}))

    command = advice.advise_secret("db").split("`")[1]

    assert shlex.split(command)[: len(words)] == words


@pytest.mark.parametrize(
    ("cloud", "role", "says"),
    [
        (Cloud.AWS, "acme-maintenance", "EnableMaintenanceRole=true"),
        (Cloud.AWS, "support", "`enable_support_role = true`"),
        (Cloud.AZURE, "admin", "`enableAdmin=true`"),
        (Cloud.GCP, f"{INSTALL}-admin", "`enable_admin = true`"),
    ],
)
def test_the_customer_reads_how_to_switch_a_role_on(cloud: Cloud, role: str, says: str) -> None:
    assert says in Advice(cloud, read_document).advise_role(role)


def test_a_standard_role_is_named_by_its_kind_whatever_the_app_calls_it() -> None:
    document = read_document(
        roles={"deployer": "false"},
        role_references={"deployer": "xc-1-maintenance@p"},
        outputs={"maintenance_sa_email": "xc-1-maintenance@p"},
    )

    says = Advice(Cloud.GCP, lambda: document).advise_role("deployer")

    assert "`enable_maintenance = true`" in says


def test_a_standard_role_of_azure_is_switched_by_its_kind_whatever_its_name() -> None:
    document = read_document(
        outputs={"maintenance_identity_client_id": "c-1"},
        roles={"operators": "false"},
        role_references={"operators": "c-1"},
    )

    assert "`enableMaintenance=true`" in Advice(Cloud.AZURE, lambda: document).advise_role(
        "operators"
    )
