"""What an intent is worked out in: the install, its config, its state at this moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from exclave.appconfig.formats import parse_duration
from exclave.appconfig.templates import ROOT, Fault, is_template, render_text
from exclave.base.errors import Kind, Problem
from exclave.control.deps import Deps
from exclave.control.install_states import Document, read_state
from exclave.domain.identity import OrgId
from exclave.domain.jobs import Reason
from exclave.domain.workflows import Workflow
from exclave.storage import builds, configs, install_states
from exclave.storage.database import AnyRow, Tx
from exclave.wire.specs import Artifact


class NotReady(Problem):
    """A step cannot become a job; the reason is one of those that jobs end with."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "not_ready"

    def __init__(self, reason: Reason, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


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

    @cached_property
    def row(self) -> AnyRow:
        """What ties the install to its app."""
        found = install_states.find_app_install(self.tx, self.org, self.install)
        if found is None:
            raise NotReady(Reason.RENDER_FAILED, "the install belongs to no app")
        return found

    @cached_property
    def state(self) -> Document:
        """The newest version of the install's state."""
        return read_state(self.tx, self.org, self.install)

    def find_part(self, section: str, name: str = "") -> Mapping[str, Any]:
        """Read a part of the config that the workflow was planned with."""
        found = configs.find_part(self.tx, self.org, self.config_id, section, name)
        if found is None:
            what = f"{section} `{name}`" if name else section
            raise NotReady(Reason.RENDER_FAILED, f"the app's config has no {what}")
        return dict(found.value)

    def find_artifact(self, part: str) -> Artifact:
        """Find what was built for a part of this config; only a finished build is deployed."""
        build = builds.find_pinned(self.tx, self.org, self.config_id, part)
        if build is None or build.state != "succeeded":
            state = "was never built" if build is None else f"is not built: {build.state}"
            why = "" if build is None or not build.error else f" ({build.error})"
            raise NotReady(
                Reason.NOT_BUILT, f"{part} {state}{why}",
                hint="Look at `exclave builds list`, repair the source and sync or build again.",
            )  # fmt: skip
        return Artifact(repository=build.repository, digest=build.digest)

    def render(self, text: str, where: str) -> str:
        """Render a text with the newest state."""
        values = {ROOT: self.state, **self.extra}
        if not is_template(text, tuple(values)):
            return text
        done = render_text(text, values, now=self.tx.now)
        if isinstance(done, Fault):
            place = f"{where}, line {done.position.line}, column {done.position.column}"
            raise NotReady(Reason.RENDER_FAILED, f"{place}: {done.message}", hint=done.hint)
        return done

    def render_map(self, texts: Mapping[str, str], where: str) -> dict[str, str]:
        """Render the values of a table."""
        return {name: self.render(str(text), f"{where}.{name}") for name, text in texts.items()}


def read_timeout(text: str) -> float:
    """Read how long a job may take."""
    seconds = parse_duration(text)
    if not seconds:
        message = f"`{text}` is no duration"
        raise NotReady(Reason.RENDER_FAILED, message, hint="Write one like `30m` or `90s`.")
    return seconds
