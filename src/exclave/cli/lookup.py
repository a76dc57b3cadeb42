"""Lookup of installs, workflows and queues by name or id; options of lists."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from exclave.base.errors import NotFound
from exclave.base.id_forms import ID_PATTERN, is_install_id
from exclave.cli.deps import Session
from exclave.client.pages import FetchPage, collect
from exclave.wire.model import Page

Item = TypeVar("Item")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_ID = re.compile(ID_PATTERN)
_RECENT = 50
"""How many workflows of an install are searched for one that no schedule started."""
_SCHEDULE = "schedule"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")

install_option: Decorator = click.option(
    "--install", metavar="NAME|ID", help="Only show results of this install."
)
workflow_argument: Decorator = click.argument("workflow", metavar="ID|INSTALL")
"""A workflow by its id, or by the name of an install: its newest one that no schedule started."""
build_option: Decorator = click.option(
    "--build", is_flag=True, help="Use the org's build queue instead of an install."
)


def page_options(body: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--limit` and `--cursor` to a list."""
    limit = click.option(
        "--limit",
        type=click.IntRange(1, 10_000),
        default=100,
        show_default=True,
        help="Maximum number of items to show.",
    )
    cursor = click.option("--cursor", help="Continue an earlier list at its cursor.")
    return limit(cursor(body))


async def gather(
    session: Session, fetch: FetchPage[Item], limit: int, cursor: str | None
) -> Page[Item]:
    """Return up to `limit` items of a list; mention if there are more."""
    page = await collect(fetch, limit=limit, cursor=cursor)
    print_rest(session, page.next, empty=not page.items)
    return page


def print_rest(session: Session, cursor: str | None, *, empty: bool) -> None:
    """Mention that a list is empty or continues, unless the output is JSON."""
    if session.out.json_mode:
        return
    if cursor:
        session.out.say(f"There are more results: add --cursor {cursor}")
    elif empty:
        session.out.say("Nothing found.")


def is_id(text: str) -> bool:
    """Return whether a text is an id."""
    return _ID.fullmatch(text) is not None


async def find_install(session: Session, name: str) -> str:
    """Return the id of an install given by name or id."""
    if _ID.fullmatch(name):
        return name
    if _NAME.fullmatch(name):
        page = await session.client.installs.list(limit=1, name=name)
        for install in page.items:
            if install.name == name:
                return install.id
    raise NotFound(
        f"there is no install `{name}`",
        hint="`exclave installs list` shows the installs that you can access.",
    )


async def find_workflow(session: Session, text: str) -> str:
    """Return the id of a workflow, given by id or as the newest one of an install.

    Crons and drift scans start workflows all the time, and a user who names an install does not
    mean those if there is another one.
    """
    if _ID.fullmatch(text) and not is_install_id(text):
        return text
    install = await find_install(session, text)
    page = await session.client.workflows.list(None, _RECENT, queue_id=install)
    if not page.items:
        raise NotFound(f"the install `{text}` has no workflow yet")
    by_people = [item for item in page.items if item.created_by != _SCHEDULE]
    return (by_people or page.items)[0].id


async def find_queue(session: Session, install: str | None, *, build: bool) -> str | None:
    """Return the id of the queue of `--install` or `--build`; None without either."""
    if install and build:
        raise click.UsageError("pass --install or --build, not both")
    if build:
        return (await session.client.orgs.get()).build_queue_id
    return await find_install(session, install) if install else None
