"""Enrolment, access tokens, copied keys; API tokens."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import select

from exclave.base.errors import Forbidden, NotFound, Unauthenticated
from exclave.control.access import (
    InstanceAdminNeeded,
    authenticate_runner,
    authenticate_user,
)
from exclave.control.audit import list_audit
from exclave.control.dispatch import enrolment, runners
from exclave.control.dispatch.enrolment import RunnerRevoked
from exclave.control.installs import installs
from exclave.control.limits.usage_counting import settle
from exclave.control.orgs import accounts, token_revocation
from exclave.domain.identity import InstallId, Role, RunnerId, ScopeKind, TokenId
from exclave.storage.engine.database import Tx
from exclave.storage.tables.runners import runner_nonces
from exclave.wire.envelope import encode_bytes
from exclave.wire.identity import GrantModel, NewToken
from exclave.wire.jobs import JobKind
from exclave.wire.runner import (
    PROTOCOL,
    AskToken,
    Enrol,
    Enrolled,
    TokenReply,
    token_message,
)
from tests.integration.control.conftest import World
from tests.support.world import ask_token, enrol_fake_runner, make_install, make_org, make_user

KEY = "A" * 43
OTHER_KEY = "B" * 43


async def enrol(world: World, token: str, key: str = KEY) -> Enrolled:
    return await enrolment.enrol_runner(
        world.deps,
        Enrol(
            token=token,
            public_key=key,
            name="r",
            version="t",
            protocol=PROTOCOL,
            capabilities=[JobKind.NOOP],
        ),
    )


async def ask_nonce(world: World) -> str:
    runner = RunnerId(world.peer.enrolled.runner_id)
    return (await enrolment.issue_nonce(world.deps, runner)).nonce


async def ask_with(world: World, nonce: str, generation: int) -> TokenReply:
    runner, key = world.peer.enrolled.runner_id, world.peer.key
    signature = encode_bytes(key.sign(token_message(runner, nonce, generation)))
    return await enrolment.issue_token(
        world.deps,
        AskToken(
            runner_id=runner,
            nonce=nonce,
            generation=generation,
            signature=signature,
        ),
    )


async def test_the_same_key_may_repeat_its_enrolment_after_a_lost_reply(world: World) -> None:
    made = await runners.create_enrolment(world.deps, world.user, world.queue)

    first = await enrol(world, made.token)
    again = await enrol(world, made.token)

    assert first.runner_id == again.runner_id


async def test_a_leaked_enrolment_token_betrays_itself_and_revokes_the_runner(world: World) -> None:
    made = await runners.create_enrolment(world.deps, world.user, world.queue)
    first = await enrol(world, made.token)

    with pytest.raises(Unauthenticated, match="used twice"):
        await enrol(world, made.token, OTHER_KEY)

    shown = await runners.show_runner(world.deps, world.user, RunnerId(first.runner_id))
    assert shown.state == "revoked"


async def test_a_spent_token_that_expired_raises_an_alarm_and_stops_nobody(world: World) -> None:
    made = await runners.create_enrolment(world.deps, world.user, world.queue)
    first = await enrol(world, made.token)
    world.clock.advance(3601)

    for _ in range(3):
        with pytest.raises(Unauthenticated, match="unknown or expired"):
            await enrol(world, made.token, OTHER_KEY)

    shown = await runners.show_runner(world.deps, world.user, RunnerId(first.runner_id))
    assert (shown.state, shown.alarm_at) == ("active", world.clock.now())
    assert "expired enrolment token" in shown.alarm
    entries = await list_audit(world.deps, world.user, "", 100)
    assert [e.subject for e in entries.items if e.action == "runner_alarm"] == [first.runner_id]


async def test_the_first_key_may_ask_again_after_the_token_expired(world: World) -> None:
    made = await runners.create_enrolment(world.deps, world.user, world.queue)
    first = await enrol(world, made.token)
    world.clock.advance(3601)

    again = await enrol(world, made.token)

    assert again.runner_id == first.runner_id


async def test_an_enrolment_token_expires(world: World) -> None:
    made = await runners.create_enrolment(world.deps, world.user, world.queue)
    world.clock.advance(3601)

    with pytest.raises(Unauthenticated, match="unknown or expired"):
        await enrol(world, made.token)


async def test_an_access_token_expires_after_its_time(world: World) -> None:
    token = await ask_token(world.deps, world.peer.enrolled.runner_id, world.peer.key, 2)
    await authenticate_runner(world.deps, token)
    world.clock.advance(901)

    with pytest.raises(Unauthenticated):
        await authenticate_runner(world.deps, token)


async def test_a_lost_token_reply_does_not_look_like_a_copied_key(world: World) -> None:
    runner, key = world.peer.enrolled.runner_id, world.peer.key
    await ask_token(world.deps, runner, key, 2)

    token = await ask_token(world.deps, runner, key, 2)

    assert await authenticate_runner(world.deps, token)


async def test_the_nonce_that_came_with_a_token_buys_the_next_one_once(world: World) -> None:
    runner, key = world.peer.enrolled.runner_id, world.peer.key
    first = await ask_with(world, await ask_nonce(world), 2)
    await authenticate_runner(world.deps, first.access_token)
    assert first.next_nonce is not None
    world.clock.advance(3700)

    second = await ask_with(world, first.next_nonce, 3)

    assert await authenticate_runner(world.deps, second.access_token)
    with pytest.raises(Unauthenticated, match="nonce is wrong"):
        await ask_with(world, first.next_nonce, 3)
    shown = await runners.show_runner(world.deps, world.user, RunnerId(runner))
    assert shown.state == "active"
    assert await authenticate_runner(world.deps, await ask_token(world.deps, runner, key, 4))


async def test_a_nonce_for_an_older_generation_ends_when_the_newer_one_is_used(
    world: World,
) -> None:
    late = await ask_nonce(world)
    first = await ask_with(world, await ask_nonce(world), 2)
    await authenticate_runner(world.deps, first.access_token)

    with pytest.raises(Unauthenticated, match="nonce is wrong"):
        await ask_with(world, late, 2)

    assert await authenticate_runner(world.deps, first.access_token)


async def test_a_nonce_ahead_of_its_use_expires(world: World) -> None:
    first = await ask_with(world, await ask_nonce(world), 2)
    assert first.next_nonce is not None
    world.clock.advance(7300)

    with pytest.raises(Unauthenticated, match="nonce is wrong"):
        await ask_with(world, first.next_nonce, 3)


async def test_a_copied_key_locks_the_runner(world: World) -> None:
    runner, key = world.peer.enrolled.runner_id, world.peer.key
    stolen = await ask_token(world.deps, runner, key, 2)
    await authenticate_runner(world.deps, stolen)

    with pytest.raises(Unauthenticated, match="two holders"):
        await ask_token(world.deps, runner, key, 2)

    with pytest.raises(Unauthenticated):
        await authenticate_runner(world.deps, stolen)
    shown = await runners.show_runner(world.deps, world.user, RunnerId(runner))
    assert (shown.state, "two holders" in shown.cause) == ("locked", True)


async def test_asking_for_nonces_writes_nothing(world: World) -> None:
    before = await count_nonces(world)

    given = {await ask_nonce(world) for _ in range(50)}
    unknown = (await enrolment.issue_nonce(world.deps, RunnerId("run_unknown"))).nonce

    assert len(given) == 50
    assert {len(each) for each in given} == {len(unknown)}
    assert await count_nonces(world) == before


async def test_a_nonce_counts_once(world: World) -> None:
    nonce = await ask_nonce(world)
    await ask_with(world, nonce, 2)

    with pytest.raises(Unauthenticated, match="nonce is wrong"):
        await ask_with(world, nonce, 2)


async def test_a_used_nonce_counts_once_after_its_token_was_used_too(world: World) -> None:
    nonce = await ask_nonce(world)
    token = (await ask_with(world, nonce, 2)).access_token
    await authenticate_runner(world.deps, token)

    with pytest.raises(Unauthenticated, match="nonce is wrong"):
        await ask_with(world, nonce, 2)
    await authenticate_runner(world.deps, token)


async def test_a_nonce_is_for_one_runner_and_ten_minutes(world: World) -> None:
    other = (await enrolment.issue_nonce(world.deps, RunnerId("run_other"))).nonce
    mine = await ask_nonce(world)
    forged = mine[:-1] + ("0" if mine[-1] != "0" else "1")

    for nonce in (other, forged, mine[:30]):
        with pytest.raises(Unauthenticated, match="nonce is wrong"):
            await ask_with(world, nonce, 2)
    world.clock.advance(601)
    with pytest.raises(Unauthenticated, match="nonce is wrong"):
        await ask_with(world, mine, 2)


async def count_nonces(world: World) -> int:
    def count(tx: Tx) -> int:
        return len(tx.all(select(runner_nonces)))

    return await world.deps.db.read(count)


async def test_a_wrong_signature_or_nonce_opens_nothing(world: World) -> None:
    runner = world.peer.enrolled.runner_id
    nonce = (await enrolment.issue_nonce(world.deps, RunnerId(runner))).nonce

    for given in (nonce, "x" * 32):
        with pytest.raises(Unauthenticated):
            await enrolment.issue_token(
                world.deps,
                AskToken(
                    runner_id=runner,
                    nonce=given,
                    generation=2,
                    signature="A" * 86,
                ),
            )


async def test_revocation_works_at_once(world: World) -> None:
    token = await ask_token(world.deps, world.peer.enrolled.runner_id, world.peer.key, 2)
    await authenticate_runner(world.deps, token)

    await runners.revoke_runner(
        world.deps, world.user, RunnerId(world.peer.who.runner), "laptop stolen"
    )

    with pytest.raises(Unauthenticated):
        await authenticate_runner(world.deps, token)
    with pytest.raises(RunnerRevoked, match="laptop stolen"):
        await ask_token(world.deps, world.peer.enrolled.runner_id, world.peer.key, 3)


async def test_a_revoked_runner_is_told_so_only_against_its_signature(world: World) -> None:
    await runners.revoke_runner(
        world.deps, world.user, RunnerId(world.peer.who.runner), "laptop stolen"
    )
    thief = Ed25519PrivateKey.generate()

    with pytest.raises(Unauthenticated) as refused:
        await ask_token(world.deps, world.peer.enrolled.runner_id, thief, 2)

    assert refused.value.code == "unauthenticated"


async def test_presence_goes_from_new_to_up_to_late_to_lost(world: World) -> None:
    peer = await enrol_fake_runner(world.deps, world.user, world.queue, "fresh")

    async def presence() -> str:
        shown = await runners.show_runner(world.deps, world.user, RunnerId(peer.who.runner))
        return str(shown.presence)

    assert await presence() == "new"
    await peer.poll()
    assert await presence() == "up"
    world.clock.advance(13)
    assert await presence() == "late"
    world.clock.advance(28)
    assert await presence() == "lost"
    await peer.renew()
    assert await presence() == "up"


async def test_api_tokens_expire_and_are_revoked(world: World) -> None:
    wish = NewToken(name="ci", account="ci", grants=[GrantModel(role=Role.VIEWER)], expires_in_s=60)
    made = await accounts.create_token(world.deps, world.user, wish)
    viewer = await authenticate_user(world.deps, made.token)
    with pytest.raises(Forbidden):
        await accounts.create_token(world.deps, viewer, wish)

    await token_revocation.revoke_token(world.deps, world.user, TokenId(made.id))
    with pytest.raises(Unauthenticated):
        await authenticate_user(world.deps, made.token)

    short = await accounts.create_token(world.deps, world.user, wish)
    world.clock.advance(61)
    with pytest.raises(Unauthenticated):
        await authenticate_user(world.deps, short.token)


async def test_the_last_use_of_a_token_is_noted(world: World) -> None:
    wish = NewToken(name="ci", account="ci", grants=[GrantModel(role=Role.VIEWER)])
    made = await accounts.create_token(world.deps, world.user, wish)

    await authenticate_user(world.deps, made.token)
    await settle(world.deps)

    listed = (await accounts.list_tokens(world.deps, world.user, "", 10)).items
    assert next(t.last_used_at for t in listed if t.id == made.id) == world.clock.now()


async def test_a_token_for_one_install_sees_that_install_only(world: World) -> None:
    other = await make_install(world.deps, world.user, "other")
    grant = GrantModel(role=Role.OPERATOR, scope=ScopeKind.INSTALL, scope_id=other)
    wish = NewToken(name="ci", account="ci", grants=[grant])
    made = await accounts.create_token(world.deps, world.user, wish)
    scoped = await authenticate_user(world.deps, made.token)

    listed = await installs.list_installs(world.deps, scoped, "", 10)

    assert [install.name for install in listed.items] == ["other"]
    with pytest.raises(NotFound):
        await installs.show_install(world.deps, scoped, InstallId(world.queue))


async def test_another_orgs_tokens_and_runners_are_not_found(world: World) -> None:
    stranger = await make_org(world.deps, "evil")
    mine = (await accounts.list_tokens(world.deps, world.user, "", 10)).items[0]

    with pytest.raises(NotFound):
        await token_revocation.revoke_token(world.deps, stranger, TokenId(mine.id))
    with pytest.raises(NotFound):
        await runners.show_runner(world.deps, stranger, RunnerId(world.peer.who.runner))
    with pytest.raises(NotFound):
        await runners.create_enrolment(world.deps, stranger, world.queue)


async def test_only_an_instance_admin_creates_orgs_and_hands_that_right_on(world: World) -> None:
    deps, bootstrap = world.deps, world.user
    tenant = await accounts.add_org(deps, bootstrap, "tenant")
    rival = await authenticate_user(deps, tenant.token)
    wish = NewToken(
        name="x", account="x", grants=[GrantModel(role=Role.ADMIN)], instance_admin=True
    )

    with pytest.raises(InstanceAdminNeeded):
        await accounts.add_org(deps, rival, "another")
    with pytest.raises(InstanceAdminNeeded):
        await accounts.create_token(deps, rival, wish)
    helper = await authenticate_user(
        deps, (await accounts.create_token(deps, bootstrap, wish)).token
    )
    plain = await make_user(deps, bootstrap, Role.ADMIN)

    assert (bootstrap.instance_admin, helper.instance_admin) == (True, True)
    assert (rival.instance_admin, plain.instance_admin) == (False, False)
    assert (await accounts.add_org(deps, helper, "another")).name == "another"


async def test_a_tenant_cannot_find_out_the_names_of_other_tenants(world: World) -> None:
    tenant = await accounts.add_org(world.deps, world.user, "tenant")
    rival = await authenticate_user(world.deps, tenant.token)
    told = []

    for name in ("acme", "tenant", "nobody-has-this"):
        with pytest.raises(Forbidden) as caught:
            await accounts.add_org(world.deps, rival, name)
        told.append((caught.value.code, caught.value.message, caught.value.advice))

    assert len(set(told)) == 1


async def test_the_operator_of_the_server_gives_and_takes_the_right_to_create_orgs(
    world: World,
) -> None:
    deps, admin = world.deps, await make_org(world.deps, "tenant")

    async def grant(token: TokenId, *, on: bool) -> None:
        await deps.db.write(lambda tx: accounts.set_instance_admin(tx, deps, token, on=on))

    found = []
    for on in (True, False):
        await grant(admin.token, on=on)
        found += (await accounts.list_tokens(deps, admin, "", 10)).items
    with pytest.raises(NotFound):
        await grant(TokenId("tok_x"), on=True)

    assert [token.instance_admin for token in found] == [True, False]
    actions = {entry.action for entry in (await list_audit(deps, admin, "", 10)).items}
    assert actions == {"instance_admin_taken", "instance_admin_granted", "org_created"}
