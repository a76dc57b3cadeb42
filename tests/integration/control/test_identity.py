"""Enrolment, access tokens, copied keys; API tokens."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.base.errors import Forbidden, NotFound, Unauthenticated
from exclave.control import accounts, enrolment, installs, runners
from exclave.control.access import authenticate_runner, authenticate_user
from exclave.control.enrolment import RunnerRevoked
from exclave.domain.identity import InstallId, Role, RunnerId, ScopeKind, TokenId
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
from tests.world import ask_token, make_install, make_org, make_peer

KEY = "A" * 43
OTHER_KEY = "B" * 43


async def enrol(world: World, token: str, key: str = KEY) -> Enrolled:
    return await enrolment.enrol_runner(world.deps, Enrol(
        token=token, public_key=key, name="r", version="t", protocol=PROTOCOL,
        capabilities=[JobKind.NOOP],
    ))  # fmt: skip


async def ask_nonce(world: World) -> str:
    runner = RunnerId(world.peer.enrolled.runner_id)
    return (await enrolment.give_nonce(world.deps, runner)).nonce


async def ask_with(world: World, nonce: str, generation: int) -> TokenReply:
    runner, key = world.peer.enrolled.runner_id, world.peer.key
    signature = encode_bytes(key.sign(token_message(runner, nonce, generation)))
    return await enrolment.give_token(world.deps, AskToken(
        runner_id=runner, nonce=nonce, generation=generation, signature=signature,
    ))  # fmt: skip


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


async def test_a_wrong_signature_or_nonce_opens_nothing(world: World) -> None:
    runner = world.peer.enrolled.runner_id
    nonce = (await enrolment.give_nonce(world.deps, RunnerId(runner))).nonce

    for given in (nonce, "x" * 32):
        with pytest.raises(Unauthenticated):
            await enrolment.give_token(world.deps, AskToken(
                runner_id=runner, nonce=given, generation=2, signature="A" * 86,
            ))  # fmt: skip


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
    peer = await make_peer(world.deps, world.user, world.queue, "fresh")

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

    await accounts.revoke_token(world.deps, world.user, TokenId(made.id))
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
        await accounts.revoke_token(world.deps, stranger, TokenId(mine.id))
    with pytest.raises(NotFound):
        await runners.show_runner(world.deps, stranger, RunnerId(world.peer.who.runner))
    with pytest.raises(NotFound):
        await runners.create_enrolment(world.deps, stranger, world.queue)
