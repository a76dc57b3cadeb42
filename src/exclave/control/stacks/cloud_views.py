"""What a customer sees with the code of a link: a page, the files of each version, signatures."""

from dataclasses import dataclass

from exclave.base.digests import hash_token
from exclave.base.errors import NotFound
from exclave.control.deps import Deps
from exclave.control.stack_versions.versions import show_state
from exclave.control.stacks.cloud_files import (
    Prepared,
    advise_customer,
    find_running_model,
    prepare_files,
    read_file,
    sign_file,
)
from exclave.control.stacks.cloud_page import Page, write_page
from exclave.control.stacks.published_templates import publish_template
from exclave.domain.installs import AppInstall
from exclave.domain.stacks import StackVersion, StackView, StoredFile
from exclave.stacks.base import StackAddress
from exclave.stacks.guide_text import INSTRUCTIONS
from exclave.storage import installs, stack_views, stacks
from exclave.storage.engine.database import Tx

LATEST = "latest"
_SIGNATURE = ".sig"
_MOST_DIGITS = 9
_ASK = "Ask the vendor for a new link."
_RATE = 5.0
"""Requests per second with one link."""
_UNKNOWN_RATE = 1.0
"""Unknown codes per second from one address."""


@dataclass(frozen=True, slots=True)
class Served:
    """The bytes of an answer to a customer, and how it may be cached."""

    media_type: str
    data: bytes
    etag: str = ""
    is_final: bool = False
    """Whether the same address gives the same bytes forever."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a link shows: an install and a version of its Stack."""

    view: StackView
    install: AppInstall
    version: StackVersion
    newest: StackVersion


async def show_page(deps: Deps, code: str, address: str) -> Served:
    """Return the page for the customer of an install."""
    seen = await _find_seen(deps, code, LATEST, address)
    ready = await prepare_files(deps, seen.view.org, seen.version)
    page = await _make_page(deps, code, seen, ready)
    return Served("text/html", write_page(page).encode())


async def fetch_file(deps: Deps, code: str, which: str, name: str, address: str) -> Served:
    """Return a file of a version, its signature, or the instructions for it."""
    seen = await _find_seen(deps, code, which, address)
    ready = await prepare_files(deps, seen.view.org, seen.version)
    if name == INSTRUCTIONS:
        page = await _make_page(deps, code, seen, ready)
        return Served("text/markdown", page.advice.instructions.encode())
    file = ready.find_file(name.removesuffix(_SIGNATURE))
    if file is None:
        raise NotFound("there is no such file", hint="The page of the link names all files.")
    if name.endswith(_SIGNATURE):
        signature = await sign_file(deps, seen.install.id, seen.version.version, file)
        return Served("application/jose", f"{signature}\n".encode())
    data = await read_file(deps, file)
    return Served(file.media_type, data, file.sha256, is_final=which != LATEST)


def is_view(code: str) -> bool:
    """Return whether a code is that of a link."""
    return code.startswith("xcv_")


async def _find_seen(deps: Deps, code: str, which: str, address: str) -> _Seen:
    """Return what a code shows; guesses from one address are limited, and so is each link."""
    seen = await deps.db.read(lambda tx: _find(tx, code, which))
    now = deps.clock.monotonic()
    if seen is None:
        deps.rates.spend("stack_guess", address, now, _UNKNOWN_RATE, burst_s=30)
        raise NotFound("there is no such Stack, or its link works no more", hint=_ASK)
    deps.rates.spend("stack_link", seen.view.id, now, _RATE, burst_s=20)
    return seen


def _find(tx: Tx, code: str, which: str) -> _Seen | None:
    view = stack_views.find_view(tx, hash_token(code))
    if view is None:
        return None
    install = installs.find_install(tx, view.org, view.install_id)
    newest = stacks.find_newest(tx, view.org, view.install_id)
    version = newest if which == LATEST else _find_numbered(tx, view, which)
    if not isinstance(install, AppInstall) or newest is None or version is None:
        return None
    return _Seen(view, install, version, newest)


def _find_numbered(tx: Tx, view: StackView, which: str) -> StackVersion | None:
    if not which.isascii() or not which.isdecimal() or len(which) > _MOST_DIGITS:
        return None
    return stacks.find_version(tx, view.org, view.install_id, int(which))


async def _make_page(deps: Deps, code: str, seen: _Seen, ready: Prepared) -> Page:
    """Gather what the customer reads."""
    template_url = await publish_template(deps, ready)
    address = StackAddress(deps.runner_url, f"{code}/{seen.version.version}", template_url)
    before = await find_running_model(deps, seen.view.org, seen.install.id)
    advice = await advise_customer(deps, seen.view.org, ready, address, before)
    return Page(
        install=seen.install.name,
        app=seen.install.app_name,
        version=seen.version.version,
        state=show_state(seen.version, seen.newest, deps.clock.now()),
        model=ready.model,
        files=_list_shown(ready.files),
        address=address,
        advice=advice,
        expires_at=seen.view.expires_at,
    )


def _list_shown(files: tuple[StoredFile, ...]) -> tuple[StoredFile, ...]:
    """List each content once, under its first name."""
    return tuple({file.sha256: file for file in reversed(files)}.values())[::-1]
