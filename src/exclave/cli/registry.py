"""`exclave registry`: credentials, repositories, tags, garbage collection."""

from functools import partial

import click

from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build, read_duration
from exclave.cli.lookup import gather, page_options
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.wire.registry import CollectGarbage, NewRegistryToken

group = SuggestingGroup("registry", help="Manage the OCI registry and its credentials.")

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024


@verb(group, "token")
@click.option(
    "--repository",
    required=True,
    help="Repository to allow: apps/demo, apps/* for a folder, * for all.",
)
@click.option("--push", is_flag=True, help="Also allow pushing and deleting.")
@click.option(
    "--minutes",
    type=int,
    default=60,
    show_default=True,
    help="Lifetime of the token in minutes.",
)
async def create_token(session: Session, repository: str, minutes: int, *, push: bool) -> None:
    """Create a password for crane, skopeo, helm, oras or docker, and print it once."""
    body = build(NewRegistryToken, repository=repository, push=push, minutes=minutes)
    made = await session.client.registry.create_token(body)
    session.out.show(made, made.password)
    if not session.out.json_mode:
        may = "pull and push" if made.push else "pull"
        host = made.url.partition("://")[2]
        session.out.say(f"Log in to {host} as `{made.username}` to {may} {host}/{made.repository}")
        session.out.say(f"Valid until {show_time(made.expires_at)}. It is not shown again.")


tokens = SuggestingGroup("tokens", help="List and revoke credentials of registry clients.")
group.add_command(tokens)


@verb(tokens, "list")
@page_options
async def list_tokens(session: Session, limit: int, cursor: str | None) -> None:
    """List the valid registry tokens, without their secrets."""
    fetch = session.client.registry.list_tokens
    page = await gather(session, fetch, limit, cursor)
    rows = [
        [
            item.id,
            item.repository,
            "pull, push" if item.push else "pull",
            item.created_by,
            item.made_with or "",
            show_time(item.expires_at),
        ]
        for item in page.items
    ]
    headers = ["ID", "REPOSITORY", "MAY", "BY", "MADE WITH", "EXPIRES"]
    session.out.show(page, session.out.table(headers, rows))


@verb(tokens, "revoke")
@click.argument("token_id", metavar="ID")
@yes_option
async def revoke_token(session: Session, token_id: str, *, yes: bool) -> None:
    """Revoke a registry token at once."""
    session.confirm(f"Revoke the registry token {token_id}?", yes=yes)
    await session.client.registry.revoke_token(token_id)
    session.out.show({"id": token_id, "revoked": True}, "")
    if not session.out.json_mode:
        session.out.say(f"Revoked {token_id}.")


@verb(group, "list")
@page_options
async def list_repositories(session: Session, limit: int, cursor: str | None) -> None:
    """List the org's repositories."""
    fetch = session.client.registry.list_repositories
    page = await gather(session, fetch, limit, cursor)
    rows = [
        [item.name, str(item.tags), str(item.manifests), show_size(item.size)]
        for item in page.items
    ]
    session.out.show(page, session.out.table(["REPOSITORY", "TAGS", "MANIFESTS", "SIZE"], rows))


@verb(group, "tags")
@click.argument("repository")
@page_options
async def list_tags(session: Session, repository: str, limit: int, cursor: str | None) -> None:
    """List the tags of a repository."""
    fetch = partial(session.client.registry.list_tags, repository)
    page = await gather(session, fetch, limit, cursor)
    rows = [[item.tag, item.digest, show_time(item.changed_at)] for item in page.items]
    session.out.show(page, session.out.table(["TAG", "DIGEST", "CHANGED"], rows))


@verb(group, "gc")
@click.option("--dry-run", is_flag=True, help="Show what would be removed without removing it.")
@click.option(
    "--older-than", default="24h", show_default=True, help="Keep anything newer than this."
)
async def collect_garbage(session: Session, older_than: str, *, dry_run: bool) -> None:
    """Remove everything that no tag, manifest or app version refers to."""
    body = build(CollectGarbage, dry_run=dry_run, older_than_s=read_duration(older_than))
    report = await session.client.registry.collect_garbage(body)
    pairs = [
        ("manifests", str(report.manifests)),
        ("blobs", f"{report.blobs} ({show_size(report.bytes)})"),
        ("uploads", str(report.uploads)),
        ("orphans", str(report.orphans)),
        ("pinned", str(report.pinned)),
    ]
    session.out.show(report, session.out.details(pairs))
    if not session.out.json_mode:
        session.out.say(
            "These would be removed."
            if report.dry_run
            else "These were removed; pinned artifacts are kept."
        )


def show_size(size: float) -> str:
    """Return a number of bytes as text."""
    for unit in _UNITS[:-1]:
        if size < _STEP:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} {_UNITS[-1]}"
