"""The context in which a job is built: the install, its config, its current state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from exclave.appconfig.commands import BadCommand, mark_command
from exclave.appconfig.model.fields import Table
from exclave.appconfig.stored.definitions import name_section
from exclave.appconfig.templates import ROOT, Fault, is_template
from exclave.base.digests import digest_json
from exclave.control.definitions import find_definition
from exclave.control.deps import Deps
from exclave.control.install_state.state import read_named_state
from exclave.control.job_specs.rendering import NotRendered, Renderings, render_inline
from exclave.domain.builds import BuildState
from exclave.domain.identity import OrgId
from exclave.domain.installs import AppInstall
from exclave.domain.jobs import Reason
from exclave.domain.workflows import Workflow
from exclave.jobspec.errors import NotReady
from exclave.storage import app_installs, builds
from exclave.storage.engine.database import Tx
from exclave.wire.roles import RoleWish
from exclave.wire.spec_fields import Artifact

T = TypeVar("T", bound=Table)

MOST_TEXT = 2 * 1024 * 1024
"""Characters of all texts of one job."""
_LATER = "-"
"""Stands for a command that is yet to be rendered, in a job that nobody will see."""


@dataclass
class Scope:
    """One step of one workflow of one install, about to begin."""

    tx: Tx
    deps: Deps
    org: OrgId
    install: str
    workflow: Workflow
    job_ids: tuple[str | None, ...]
    step: str
    config_id: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)
    """Further roots that templates of this step can read."""
    texts: Renderings | None = None
    """Texts rendered before this transaction; without them only short texts are rendered."""
    size: int = 0
    role: RoleWish | None = None
    """The role that the job runs with; None on the customer's own machine."""

    @property
    def role_name(self) -> str:
        """The name of the job's role; empty if it has none."""
        return "" if self.role is None else self.role.name

    @cached_property
    def row(self) -> AppInstall:
        """The install with the facts of its app."""
        app_install = app_installs.find_app_install(self.tx, self.org, self.install)
        if app_install is None:
            raise NotReady(Reason.RENDER_FAILED, "the install belongs to no app")
        return app_install

    @cached_property
    def state(self) -> tuple[str, Mapping[str, object]]:
        """The newest version of the install's state, and its name."""
        return read_named_state(self.tx, self.org, self.install)

    def find_definition(self, model: type[T], name: str = "") -> T:
        """Return a part of the config that the workflow was planned with."""
        definition = find_definition(self.tx, self.org, self.config_id, model, name)
        if definition is None:
            section = name_section(model)
            what = f"{section} `{name}`" if name else section
            raise NotReady(Reason.RENDER_FAILED, f"the app's config has no {what}")
        return definition

    def find_artifact(self, part: str) -> Artifact:
        """Return the artifact that was built for a part of this config."""
        build = builds.find_pinned(self.tx, self.org, self.config_id, part)
        if build is None or build.state != BuildState.SUCCEEDED:
            state = "was never built" if build is None else f"is not built: {build.state}"
            why = "" if build is None or not build.error else f" ({build.error})"
            raise NotReady(
                Reason.NOT_BUILT,
                f"{part} {state}{why}",
                hint="Look at `exclave builds list`, repair the source and sync or build again.",
            )
        return Artifact(repository=build.repository, digest=build.digest)

    def render(self, text: str, where: str) -> str:
        """Render a text with the newest state; `NotRendered` if that has to be done outside."""
        done = self._render(text)
        if isinstance(done, Fault):
            location = f"{where}, line {done.position.line}, column {done.position.column}"
            raise NotReady(Reason.RENDER_FAILED, f"{location}: {done.message}", hint=done.hint)
        self.size += len(done)
        if self.size > MOST_TEXT:
            message = f"{where}: the texts of this step are longer than {MOST_TEXT} characters"
            raise NotReady(Reason.RENDER_FAILED, message, hint="Put large files into the source.")
        return done

    def render_command(self, text: str, where: str) -> list[str]:
        """Render the words of a command; a value stays a part of the word that it stands in."""
        try:
            marked = mark_command(text, self._make_mark(where), (ROOT, *self.extra))
        except BadCommand as bad:
            message = f"{where}: {bad.message}"
            raise NotReady(Reason.RENDER_FAILED, message, hint=bad.hint) from bad
        try:
            rendered = self.render(marked.text, where)
        except NotReady:
            self.render(text, where)  # fails in the same way, at the place that the author knows
            raise
        if self.texts is not None and self.texts.wanted:
            return [_LATER]
        return marked.read_words(rendered)

    def _make_mark(self, where: str) -> str:
        """Make a mark that no value can know; the same one when the text is rendered ahead."""
        if self.texts is None:
            return self.deps.ids.new("cmd")
        return self.texts.make_once(f"mark of {where}", lambda: self.deps.ids.new("cmd"))

    def _render(self, text: str) -> str | Fault:
        if not is_template(text, (ROOT, *self.extra)):
            return text
        name, state = self.state
        values = {ROOT: state, **self.extra}
        if self.texts is not None:
            return self.texts.render(self.tx, text, values, self._name_values(name), self.tx.now)
        done = render_inline(self.tx, text, values, self.tx.now)
        if done is None:
            raise NotRendered(f"the step `{self.step}` has to be prepared")
        return done

    def _name_values(self, state: str) -> str:
        return f"{state} {digest_json(self.extra)}" if self.extra else state
