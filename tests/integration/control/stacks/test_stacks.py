"""Stacks on the control plane: one-time codes and tokens, reports, waits, resignation."""

import ast
import asyncio
import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.base.errors import Conflict, NotFound, Unauthenticated
from exclave.control.access import authenticate_runner
from exclave.control.deps import Deps
from exclave.control.dispatch import enrolment, polls, runners
from exclave.control.installs import state_views, upgrades, workflow_requests
from exclave.control.installs.input_validation import BadInputs
from exclave.control.limits.usage_counting import settle
from exclave.control.runtime.rates import RateLimited
from exclave.control.stacks import stacks
from exclave.control.workflows import workflows
from exclave.domain.identity import InstallId, QueueId, RunnerIdentity, User
from exclave.domain.quotas import QuotaExceeded, Quotas
from exclave.domain.workflows import WorkflowId
from exclave.storage import app_installs
from exclave.wire.envelope import public_text
from exclave.wire.installs import StartWork, Upgrade, WorkflowKind
from exclave.wire.jobs import JobKind
from exclave.wire.runner import PROTOCOL, Enrol, Enrolled, Poll
from exclave.wire.stacks import StackCreated, StackDocument, StackReport
from tests.integration.control.conftest import World
from tests.support.installs import INPUTS, add_config, make_app, make_app_install
from tests.support.toy_stack import add_toy_stack
from tests.support.world import ManualClock, ask_token, enrol_fake_runner, make_install, make_org

SECRETS = (
    {"name": "db_password", "description": "Of {{ .nuon.install.name }}", "required": True},
    {"name": "key", "auto_generate": True},
)
OWN = (
    *INPUTS,
    {"name": "mail", "group": "ops", "user_configurable": True, "required": True},
    {"name": "pin", "group": "ops", "user_configurable": True, "sensitive": True},
)
FACTS = {"hostname": "box", "os": "linux"}


@dataclass
class Shop:
    deps: Deps
    clock: ManualClock
    user: User
    app: str
    install: InstallId
    workflow: str | None

    async def report(self, who: RunnerIdentity, **more: Any) -> Any:
        return await stacks.report_stack(self.deps, who, StackReport(facts=FACTS, **more))

    async def read_state(self) -> Any:
        return (await state_views.show_state(self.deps, self.user, self.install)).document


async def open_shop(world: World, **more: Any) -> Shop:
    wish = {"provision": more.pop("provision", False)}
    wish |= {"region": "eu-west-1"} if more.get("cloud") == "aws" else {}
    app = await make_app(world.deps, world.user, **{"secrets": SECRETS, **more})
    made = await make_app_install(world.deps, world.user, "shop", **wish)
    return Shop(world.deps, world.clock, world.user, app, InstallId(made.id), made.workflow_id)


@pytest.fixture
async def shop(world: World) -> Shop:
    return await open_shop(world)


def read_script(created: StackCreated) -> str:
    (file,) = created.files
    assert (file.name, file.media_type) == ("local.py", "text/x-python")
    return file.content


def find_token(script: str) -> str:
    found = re.findall(r"xce_[0-9a-z]{52}", script)
    assert len(found) == 1
    return str(found[0])


async def enrol(deps: Deps, token: str) -> Enrolled:
    key = Ed25519PrivateKey.generate()
    enrolled = await enrolment.enrol_runner(
        deps,
        Enrol(
            token=token,
            public_key=public_text(key),
            name="stack-acme",
            version="test",
            protocol=PROTOCOL,
            capabilities=[JobKind.NOOP],
        ),
    )
    KEYS[enrolled.runner_id] = key
    return enrolled


KEYS: dict[str, Ed25519PrivateKey] = {}


async def join(shop: Shop) -> RunnerIdentity:
    made = await stacks.create_stack(shop.deps, shop.user, shop.install)
    enrolled = await enrol(shop.deps, find_token(read_script(made)))
    key = KEYS[enrolled.runner_id]
    token = await ask_token(shop.deps, enrolled.runner_id, key, enrolled.generation)
    return await authenticate_runner(shop.deps, token)


def find_code(created: StackCreated) -> str:
    return created.files[0].url.split("/")[-2]


async def fetch_script(shop: Shop, code: str) -> str:
    return (await stacks.fetch_file(shop.deps, code, "local.py")).content


async def test_a_script_names_what_the_app_asks_of_the_customer(shop: Shop) -> None:
    made = await stacks.create_stack(shop.deps, shop.user, shop.install)

    node = next(
        one
        for one in ast.parse(read_script(made)).body
        if isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == "STACK"
    )
    assert node.value is not None
    document = ast.literal_eval(node.value)
    read = StackDocument.model_validate(document)
    assert read.model_dump(mode="json") == document
    assert document["terms"]["install"] == "acme"
    assert document["terms"]["secrets"][0]["description"] == "Of acme"
    assert [one["name"] for one in document["terms"]["inputs"]] == ["zone"]
    assert len(document["keys"]) == 1


async def test_a_new_stack_voids_what_was_made_before_and_not_used(shop: Shop) -> None:
    old = await stacks.create_stack(shop.deps, shop.user, shop.install)
    new = await stacks.create_stack(shop.deps, shop.user, shop.install)

    with pytest.raises(Unauthenticated):
        await enrol(shop.deps, find_token(read_script(old)))
    with pytest.raises(NotFound):
        await fetch_script(shop, find_code(old))
    assert (await enrol(shop.deps, find_token(read_script(new)))).queue_id == shop.install


async def test_a_code_gives_a_fresh_token_each_time_until_one_was_used(shop: Shop) -> None:
    made = await stacks.create_stack(shop.deps, shop.user, shop.install)
    code = find_code(made)

    first = find_token(await fetch_script(shop, code))
    second = find_token(await fetch_script(shop, code))

    for void in (find_token(read_script(made)), first):
        with pytest.raises(Unauthenticated):
            await enrol(shop.deps, void)
    await enrol(shop.deps, second)
    with pytest.raises(NotFound):
        await fetch_script(shop, code)


async def test_a_code_ends_after_an_hour_whoever_asked_in_between(shop: Shop) -> None:
    made = await stacks.create_stack(shop.deps, shop.user, shop.install)
    shop.clock.advance(3500)
    late = find_token(await fetch_script(shop, find_code(made)))
    shop.clock.advance(200)

    with pytest.raises(NotFound):
        await fetch_script(shop, find_code(made))
    with pytest.raises(Unauthenticated):
        await enrol(shop.deps, late)


async def test_other_orgs_and_plain_installs_get_no_stack(shop: Shop) -> None:
    stranger = await make_org(shop.deps, "other")
    plain = await make_install(shop.deps, shop.user, "plain")

    with pytest.raises(NotFound):
        await stacks.create_stack(shop.deps, stranger, shop.install)
    with pytest.raises(NotFound):
        await stacks.show_stack(shop.deps, stranger, shop.install)
    with pytest.raises(Conflict):
        await stacks.create_stack(shop.deps, shop.user, InstallId(plain))
    with pytest.raises(NotFound):
        await fetch_script(shop, "xcs_nonsense")


async def test_a_report_becomes_outputs_and_state(shop: Shop) -> None:
    who = await join(shop)

    terms = await shop.report(who, secrets={"db_password": True}, inputs={"zone": "b"})

    state = await shop.read_state()
    shown = await stacks.show_stack(shop.deps, shop.user, shop.install)
    assert shown.state == "active"
    assert [one.name for one in terms.secrets] == ["db_password", "key"]
    outputs = state["install_stack"]["outputs"]
    assert outputs["hostname"] == "box"
    assert outputs["db_password_arn"] == "((exclave:secret:db_password))"
    assert outputs["install_inputs"] == {"zone": "b"}
    assert state["inputs"]["inputs"]["zone"] == "b"
    assert state["install_stack"]["status"] == "active"
    assert state["runner"]["id"] == who.runner


async def test_the_facts_of_a_report_are_those_of_the_installs_cloud(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_toy_stack(monkeypatch)
    shop = await open_shop(world, cloud="aws")
    who = (await enrol_fake_runner(shop.deps, shop.user, QueueId(shop.install))).who

    await stacks.report_stack(shop.deps, who, StackReport(facts={"account_id": "42"}))

    outputs = (await shop.read_state())["install_stack"]["outputs"]
    assert (outputs["region"], outputs["account_id"]) == ("toy-1", "42")


async def test_an_install_does_not_move_to_another_cloud(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_toy_stack(monkeypatch)
    shop = await open_shop(world)
    await add_config(shop.deps, shop.user, shop.app, cloud="aws")

    with pytest.raises(Conflict, match="the config is for `aws`, and the install is on `local`"):
        await upgrades.upgrade_install(shop.deps, shop.user, shop.install, Upgrade())


async def test_the_same_report_again_makes_no_new_state(shop: Shop) -> None:
    who = await join(shop)
    await shop.report(who)
    before = (await state_views.show_state(shop.deps, shop.user, shop.install)).version

    await shop.report(who)

    after = await state_views.show_state(shop.deps, shop.user, shop.install)
    assert after.version == before


async def test_a_flood_of_changed_reports_is_refused_and_stores_nothing(shop: Shop) -> None:
    who = await join(shop)
    few = replace(shop, deps=replace(shop.deps, quotas=Quotas(reports_per_hour=3)))
    for number in range(3):
        await few.report(who, inputs={"zone": "ab"[number % 2]})
    before = (await state_views.show_state(shop.deps, shop.user, shop.install)).version

    with pytest.raises(RateLimited) as refused:
        await few.report(who, inputs={"zone": "b"})
    await few.report(who, inputs={"zone": "a"})

    after = await state_views.show_state(shop.deps, shop.user, shop.install)
    assert refused.value.facts["retry_after_s"] == 300
    assert after.version == before
    assert (await shop.read_state())["inputs"]["inputs"]["zone"] == "a"


async def test_a_stack_may_report_changes_again_an_hour_later(shop: Shop) -> None:
    who = await join(shop)
    few = replace(shop, deps=replace(shop.deps, quotas=Quotas(reports_per_hour=1)))
    await few.report(who, inputs={"zone": "a"})
    with pytest.raises(RateLimited):
        await few.report(who, inputs={"zone": "b"})

    shop.clock.advance(3601)
    await few.report(who, inputs={"zone": "b"})

    assert (await shop.read_state())["inputs"]["inputs"]["zone"] == "b"


async def test_an_install_that_used_up_its_documents_takes_no_changed_report(shop: Shop) -> None:
    who = await join(shop)
    await shop.report(who)
    await settle(shop.deps)
    full = replace(shop, deps=replace(shop.deps, quotas=Quotas(documents_per_install_bytes=100)))

    with pytest.raises(QuotaExceeded, match="the install may store 100 bytes"):
        await full.report(who, inputs={"zone": "b"})
    await full.report(who)

    outputs = (await shop.read_state())["install_stack"]["outputs"]
    assert outputs["install_inputs"] == {}


async def test_a_report_answers_the_provision_that_waits_for_it(world: World) -> None:
    shop = await open_shop(world, provision=True)
    assert shop.workflow is not None
    flow = WorkflowId(shop.workflow)
    before = await workflows.show_workflow(shop.deps, shop.user, flow)

    await shop.report(await join(shop))

    after = await workflows.show_workflow(shop.deps, shop.user, flow)
    states = {step.name: step.state for step in before.steps}
    assert states["stack"] == "active"
    assert {step.name: step.state for step in after.steps}["stack"] == "succeeded"


async def test_a_provision_goes_on_at_once_where_the_stack_runs_already(shop: Shop) -> None:
    await shop.report(await join(shop))
    wish = StartWork(kind=WorkflowKind.PROVISION)

    begun = await workflow_requests.start_work(shop.deps, shop.user, shop.install, wish)

    assert {step.name: step.state for step in begun.steps}["stack"] == "succeeded"


async def test_a_required_input_is_waited_for_and_sensitive_ones_stay_away(world: World) -> None:
    shop = await open_shop(world, inputs=OWN, provision=True)
    assert shop.workflow is not None
    who = await join(shop)

    await shop.report(who, sensitive_inputs=["pin"])

    flow = WorkflowId(shop.workflow)
    waiting = await workflows.show_workflow(shop.deps, shop.user, flow)
    owed = await stacks.show_stack(shop.deps, shop.user, shop.install)
    assert {step.name: step.state for step in waiting.steps}["stack"] == "active"
    assert (owed.state, owed.outputs["owed_inputs"]) == ("incomplete", ["mail"])

    await shop.report(who, sensitive_inputs=["pin"], inputs={"mail": "a@b.test"})

    done = await workflows.show_workflow(shop.deps, shop.user, flow)
    state = await shop.read_state()
    assert {step.name: step.state for step in done.steps}["stack"] == "succeeded"
    assert state["inputs"]["inputs"]["pin"] == "((exclave:secret:stack-input-pin))"


@pytest.mark.parametrize(
    "inputs", [{"domain": "evil.test"}, {"nonsense": "1"}, {"pin": "1234"}], ids=str
)
async def test_what_is_not_the_customers_to_set_is_not_taken(
    world: World, inputs: dict[str, str]
) -> None:
    shop = await open_shop(world, inputs=OWN)
    who = await join(shop)
    before = (await shop.read_state())["inputs"]

    await shop.report(who, inputs=inputs)

    assert (await shop.read_state())["inputs"] == before


async def test_a_value_of_the_wrong_type_is_refused_as_a_whole(world: World) -> None:
    count = {"name": "count", "group": "ops", "user_configurable": True, "type": "number"}
    shop = await open_shop(world, inputs=(*INPUTS, count))
    who = await join(shop)

    with pytest.raises(BadInputs):
        await shop.report(who, inputs={"count": "many", "zone": "c"})

    assert (await shop.read_state())["install_stack"]["status"] == "awaiting"


async def test_a_runner_of_no_app_has_nothing_to_report(world: World) -> None:
    with pytest.raises(NotFound):
        await stacks.report_stack(world.deps, world.peer.who, StackReport(facts=FACTS))


async def test_a_running_stack_learns_what_a_new_config_asks(shop: Shop) -> None:
    who = await join(shop)
    await shop.report(who)
    more = ({"name": "smtp", "required": True},)
    config = await add_config(shop.deps, shop.user, shop.app, secrets=(*SECRETS, *more))

    def move(tx: Any) -> None:
        app_installs.set_config(tx, shop.user.org, shop.install, config, shop.user.person)

    await shop.deps.db.write(move)

    terms = await shop.report(who)

    assert [one.name for one in terms.secrets] == ["db_password", "key", "smtp"]


async def test_a_waiting_poll_tells_the_stack_to_report_after_an_upgrade(shop: Shop) -> None:
    who = await join(shop)
    await add_config(shop.deps, shop.user, shop.app, secrets=(*SECRETS, {"name": "smtp"}))
    waiting = asyncio.ensure_future(
        polls.poll(
            shop.deps,
            who,
            Poll(
                boot=1,
                no=1,
                nonce="nonce-of-the-poll-1",
                free=1,
                executions=[],
                max_hold_s=30,
                version="test",
                protocol=PROTOCOL,
                capabilities=[JobKind.NOOP],
            ),
        )
    )
    while f"stack:{shop.install}" not in shop.deps.hub.watches:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.01)
    shop.deps.hub.wake_all()  # as after a gap; whoever has nothing new goes on waiting
    await asyncio.sleep(0.02)
    assert not waiting.done()

    await upgrades.upgrade_install(shop.deps, shop.user, shop.install, Upgrade())

    assert (await waiting).report


async def test_a_runner_that_resigns_is_revoked_and_the_stack_is_gone(shop: Shop) -> None:
    who = await join(shop)
    await shop.report(who)

    await stacks.resign_runner(shop.deps, who)

    shown = await runners.show_runner(shop.deps, shop.user, who.runner)
    assert (shown.state, shown.cause) == ("revoked", "removed by the customer")
    assert (await stacks.show_stack(shop.deps, shop.user, shop.install)).state == "removed"
    with pytest.raises(Unauthenticated):
        await ask_token(shop.deps, who.runner, KEYS[who.runner], 2)


def test_only_the_present_program_is_served() -> None:
    with pytest.raises(NotFound):
        stacks.find_package("exclave-0.0.1-py3-none-any.whl")
