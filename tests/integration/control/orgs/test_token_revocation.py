"""Revoking a token: alone, or with everything that was made with it."""

import asyncio

import pytest

from exclave.base.errors import NotFound, Unauthenticated
from exclave.control.access import authenticate_user
from exclave.control.audit import list_audit
from exclave.control.dispatch import enrolment, runners
from exclave.control.orgs import accounts
from exclave.control.orgs.token_revocation import RevokeWish, revoke_token
from exclave.control.registry import tokens
from exclave.control.registry.access import authenticate_client
from exclave.control.stacks import stacks
from exclave.domain.identity import InstallId, Role, RunnerId, User
from exclave.wire.identity import GrantModel, NewToken, TokenRevoked
from exclave.wire.jobs import JobKind
from exclave.wire.registry import NewRegistryToken
from exclave.wire.runner import PROTOCOL, Enrol
from tests.integration.control.conftest import World
from tests.support.installs import make_app, make_app_install
from tests.support.world import make_org

CASCADE = RevokeWish(cascade=True)


async def mint(world: World, maker: User, name: str) -> tuple[User, str]:
    wish = NewToken(name=name, account=name, grants=[GrantModel(role=Role.ADMIN)])
    made = await accounts.create_token(world.deps, maker, wish)
    return await authenticate_user(world.deps, made.token), made.token


async def join(world: World, token: str, key: str = "A") -> RunnerId:
    wish = Enrol(
        token=token,
        public_key=key * 43,
        name="vm",
        version="t",
        protocol=PROTOCOL,
        capabilities=[JobKind.NOOP],
    )
    return RunnerId((await enrolment.enrol_runner(world.deps, wish)).runner_id)


async def make_password(world: World, user: User) -> str:
    wish = NewRegistryToken(repository="*", push=True, minutes=60)
    return (await tokens.create_registry_token(world.deps, user, wish)).password


def name_all(found: TokenRevoked) -> tuple[list[str], list[str]]:
    return (
        sorted(f"{each.kind} {each.name}" for each in found.revoked.items),
        sorted(f"{each.kind} {each.name}" for each in found.still_valid.items),
    )


async def test_a_cascade_revokes_all_that_was_made_with_a_token_and_by_that(world: World) -> None:
    deps = world.deps
    leaver, _ = await mint(world, world.user, "leaver")
    child, child_token = await mint(world, leaver, "child")
    grandchild, grandchild_token = await mint(world, child, "grandchild")
    _, stranger_token = await mint(world, world.user, "stranger")
    password = await make_password(world, grandchild)
    other_password = await make_password(world, world.user)
    enrolled = await runners.create_enrolment(deps, child, world.queue)

    shown = await revoke_token(
        deps, world.user, leaver.token, RevokeWish(cascade=True, dry_run=True)
    )
    assert await authenticate_user(deps, grandchild_token)
    done = await revoke_token(deps, world.user, leaver.token, CASCADE)

    expected = sorted(
        [
            "token child",
            "token grandchild",
            "registry_token *",
            f"enrolment {world.queue}",
        ]
    )
    assert name_all(shown) == name_all(done) == (expected, [])
    assert done.revoked.counts == {"enrolment": 1, "registry_token": 1, "token": 2}
    for token in (child_token, grandchild_token):
        with pytest.raises(Unauthenticated):
            await authenticate_user(deps, token)
    with pytest.raises(Unauthenticated):
        await authenticate_client(deps, password)
    with pytest.raises(Unauthenticated):
        await join(world, enrolled.token)
    assert await authenticate_user(deps, stranger_token)
    assert await authenticate_client(deps, other_password)


async def test_without_a_cascade_the_reply_names_what_stays_valid(world: World) -> None:
    deps = world.deps
    leaver, _ = await mint(world, world.user, "leaver")
    _, child_token = await mint(world, leaver, "child")
    password = await make_password(world, leaver)
    runner = await join(world, (await runners.create_enrolment(deps, leaver, world.queue)).token)

    done = await revoke_token(deps, world.user, leaver.token)

    assert name_all(done) == ([], ["registry_token *", "runner vm", "token child"])
    assert await authenticate_user(deps, child_token)
    assert await authenticate_client(deps, password)
    assert (await runners.show_runner(deps, world.user, runner)).state == "active"


async def test_a_cascade_later_finds_what_a_revoked_token_left_behind(world: World) -> None:
    leaver, _ = await mint(world, world.user, "leaver")
    child, _ = await mint(world, leaver, "child")
    _, grandchild_token = await mint(world, child, "grandchild")
    await revoke_token(world.deps, world.user, leaver.token)
    await revoke_token(world.deps, world.user, child.token)

    done = await revoke_token(world.deps, world.user, leaver.token, CASCADE)

    assert name_all(done) == (["token grandchild"], [])
    with pytest.raises(Unauthenticated):
        await authenticate_user(world.deps, grandchild_token)


async def test_runners_go_only_when_they_are_asked_for(world: World) -> None:
    deps = world.deps
    leaver, _ = await mint(world, world.user, "leaver")
    runner = await join(world, (await runners.create_enrolment(deps, leaver, world.queue)).token)

    kept = await revoke_token(deps, world.user, leaver.token, CASCADE)
    gone = await revoke_token(
        deps, world.user, leaver.token, RevokeWish(cascade=True, runners=True)
    )

    assert name_all(kept) == ([], ["runner vm"])
    assert name_all(gone) == (["runner vm"], [])
    assert (await runners.show_runner(deps, world.user, runner)).state == "revoked"
    entries = (await list_audit(deps, world.user, "", 100)).items
    details = [entry.detail for entry in entries if entry.action == "token_revoked"]
    assert {"runner": "1"} in details


async def test_a_revoked_token_that_is_still_at_work_makes_nothing_more(world: World) -> None:
    deps = world.deps
    leaver, _ = await mint(world, world.user, "leaver")
    await revoke_token(deps, world.user, leaver.token, CASCADE)

    with pytest.raises(Unauthenticated):
        await mint(world, leaver, "late")
    with pytest.raises(Unauthenticated):
        await make_password(world, leaver)
    with pytest.raises(Unauthenticated):
        await runners.create_enrolment(deps, leaver, world.queue)


async def test_tokens_made_while_their_maker_is_revoked_never_stay_valid(world: World) -> None:
    deps = world.deps
    for number in range(5):
        leaver, _ = await mint(world, world.user, f"leaver-{number}")
        child, _ = await mint(world, leaver, f"child-{number}")
        made = await asyncio.gather(
            *(mint(world, child, f"late-{number}-{each}") for each in range(4)),
            revoke_token(deps, world.user, leaver.token, CASCADE),
            *(mint(world, child, f"later-{number}-{each}") for each in range(4)),
            return_exceptions=True,
        )

        for each in made:
            if isinstance(each, tuple):
                with pytest.raises(Unauthenticated):
                    await authenticate_user(deps, each[1])


async def test_a_token_of_another_org_is_not_there(world: World) -> None:
    rival = await make_org(world.deps, "rival")

    with pytest.raises(NotFound):
        await revoke_token(world.deps, rival, world.user.token, CASCADE)


async def test_registry_tokens_are_listed_without_secrets_and_revoked_at_once(
    world: World,
) -> None:
    deps, rival = world.deps, await make_org(world.deps, "rival")
    passwords = [await make_password(world, world.user) for _ in range(3)]
    await make_password(world, rival)

    first = await tokens.list_registry_tokens(deps, world.user, "", 2)
    rest = await tokens.list_registry_tokens(deps, world.user, first.next or "", 2)
    listed = [*first.items, *rest.items]
    with pytest.raises(NotFound):
        await tokens.revoke_registry_token(deps, rival, listed[0].id)
    await tokens.revoke_registry_token(deps, world.user, listed[0].id)

    assert len({each.id for each in listed}) == 3
    assert {each.made_with for each in listed} == {world.user.token}
    good = []
    for password in passwords:
        assert password not in first.model_dump_json() + rest.model_dump_json()
        try:
            good.append(await authenticate_client(deps, password))
        except Unauthenticated:
            continue
    assert len(good) == 2
    with pytest.raises(NotFound):
        await tokens.revoke_registry_token(deps, world.user, listed[0].id)


async def test_a_stack_code_and_the_tokens_it_gave_out_go_with_a_cascade(world: World) -> None:
    deps = world.deps
    await make_app(deps, world.user)
    install = InstallId((await make_app_install(deps, world.user, "shop", provision=False)).id)
    leaver, _ = await mint(world, world.user, "leaver")
    made = await stacks.create_stack(deps, leaver, install)
    code = made.files[0].url.split("/")[-2]
    await stacks.fetch_file(deps, code, "local.py")

    done = await revoke_token(deps, world.user, leaver.token, CASCADE)

    assert done.revoked.counts == {"enrolment": 1, "stack_code": 1}
    with pytest.raises(NotFound):
        await stacks.fetch_file(deps, code, "local.py")
