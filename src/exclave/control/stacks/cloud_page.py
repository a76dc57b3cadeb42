"""The page on which a customer reads about the Stack of a cloud: HTML without scripts."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Final

from exclave.control.workers.render_stack import Advice
from exclave.domain.stacks import RoleKind, StackState, StoredFile
from exclave.stacks.base import StackAddress
from exclave.stacks.model import RoleModel, StackModel
from exclave.stacks.reporting.permissions_text import PERMISSIONS

_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}"
    "pre{background:#f3f3f5;padding:.8rem;white-space:pre-wrap;overflow-wrap:anywhere}"
    "table{border-collapse:collapse}td,th{text-align:left;padding:.2rem .8rem .2rem 0;"
    "vertical-align:top}code{overflow-wrap:anywhere}.warning{border-left:.3rem solid #b00;"
    "padding-left:.8rem}"
)
STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; frame-ancestors 'none';"
    " base-uri 'none'; form-action 'none'"
)
"""The Content-Security-Policy of the page: its one style, and nothing else."""
_KINDS: Final = {
    RoleKind.PROVISION: "creates and changes the ground that the app stands on",
    RoleKind.MAINTENANCE: "deploys the app and runs its actions",
    RoleKind.DEPROVISION: "removes what was created",
    RoleKind.CUSTOM: "is for what the app names it for",
    RoleKind.BREAK_GLASS: "is for emergencies, off until you switch it on",
}


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that the page shows."""

    install: str
    app: str
    version: int
    state: StackState
    model: StackModel
    files: tuple[StoredFile, ...]
    address: StackAddress
    advice: Advice
    expires_at: datetime


def write_page(page: Page) -> str:
    """Return the page in HTML; every text of the app is escaped."""
    body = "\n".join(_write_body(page))
    title = escape(f"{page.app} for {page.install}")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _write_body(page: Page) -> Iterator[str]:
    yield f"<h1>{escape(page.app)} for {escape(page.install)}</h1>"
    yield f"<p>Version {page.version} of your Stack, {escape(page.state)}.</p>"
    if page.model.description:
        yield f"<p>{escape(page.model.description)}</p>"
    yield f"<p>{escape(page.advice.guide.summary)}</p>"
    if page.advice.guide.warning:
        yield f'<p class="warning">{escape(page.advice.guide.warning)}</p>'
    yield from _write_changes(page)
    yield from _write_steps(page)
    yield "<h2>What the runner can do</h2>\n<ul>"
    yield from (_write_role(role) for role in page.model.roles)
    report = escape(page.address.build_url(PERMISSIONS))
    yield f'</ul>\n<p><a href="{report}">What each role may do, in words</a></p>'
    yield from _write_parameters(page)
    yield from _write_files(page)
    yield (
        "<h2>What leaves your account</h2>\n<p>The runner calls"
        f" <code>{escape(page.model.runner_url)}</code>, and nothing calls it. Values of secrets"
        " stay in your account; the vendor learns whether they are set.</p>"
    )
    until = page.expires_at.strftime("%Y-%m-%d")
    yield f"<p>This link works until {until}. It shows files and enrols nothing.</p>"


def _write_changes(page: Page) -> Iterator[str]:
    """Write what is different from the version that the customer runs."""
    if not page.advice.changes:
        return
    yield "<h2>What changes from the version that you run</h2>\n<ul>"
    for change in page.advice.changes:
        wider = " <strong>The runner may do more than before.</strong>" if change.is_wider else ""
        details = escape("; ".join(change.details))
        name = f"{escape(change.part)} <code>{escape(change.name)}</code> {escape(change.kind)}"
        yield f"<li>{name}{': ' + details if details else ''}.{wider}</li>"
    yield "</ul>"


def _write_steps(page: Page) -> Iterator[str]:
    for step in page.advice.guide.steps:
        yield f"<h2>{escape(step.title)}</h2>"
        if step.text:
            yield f"<p>{escape(step.text)}</p>"
        yield from (f"<pre>{escape(command)}</pre>" for command in step.commands)
        for link in step.links:
            if link.url.startswith("https://"):
                yield f'<p><a href="{escape(link.url)}">{escape(link.title)}</a></p>'


def _write_role(role: RoleModel) -> str:
    off = "" if role.enabled else " It is off until you switch it on."
    about = f" {escape(role.description)}" if role.description else ""
    kind = escape(_KINDS[role.kind])
    return f"<li><strong>{escape(role.title or role.name)}</strong> {kind}.{about}{off}</li>"


def _write_parameters(page: Page) -> Iterator[str]:
    yield "<h2>What you fill in</h2>\n<table>\n<tr><th>Parameter</th><th></th><th></th></tr>"
    for parameter in page.advice.parameters:
        need = "required" if parameter.required else f"default {parameter.default or 'empty'}"
        shown = "required, secret" if parameter.required and parameter.sensitive else need
        yield (
            f"<tr><td><code>{escape(parameter.name)}</code></td><td>{escape(shown)}</td>"
            f"<td>{escape(parameter.description)}</td></tr>"
        )
    yield "</table>"


def _write_files(page: Page) -> Iterator[str]:
    yield "<h2>Files</h2>\n<table>\n<tr><th>File</th><th>SHA-256</th><th></th></tr>"
    for file in page.files:
        url = escape(page.address.build_url(file.name))
        yield (
            f'<tr><td><a href="{url}">{escape(file.name)}</a></td>'
            f'<td><code>{file.sha256}</code></td><td><a href="{url}.sig">signature</a></td></tr>'
        )
    yield "</table>"
