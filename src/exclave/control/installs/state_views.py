"""Show the state of an install, and the app's README rendered with it."""

from datetime import datetime

from exclave.appconfig.model.kinds.metadata import Metadata
from exclave.appconfig.templates import ROOT, Fault
from exclave.base.errors import NotFound
from exclave.control.definitions import find_definition
from exclave.control.deps import Deps
from exclave.control.install_state.state import complete, read_named_state
from exclave.control.installs.access import get_app_install
from exclave.control.job_specs.rendering import Renderings, read_rendered
from exclave.domain.identity import InstallId, Right, User
from exclave.storage import install_states
from exclave.storage.engine.database import Tx
from exclave.wire.installs import ReadmeReply, StateReply
from exclave.wire.model import show_json


async def show_state(
    deps: Deps,
    user: User,
    install: InstallId,
    *,
    version: int | None = None,
    at: datetime | None = None,
) -> StateReply:
    """Show a version of the state: a numbered one, that of a moment, or the newest."""

    def show(tx: Tx) -> StateReply:
        get_app_install(tx, user, install, Right.READ)
        if at is not None:
            state = install_states.find_state_at(tx, user.org, install, at)
        else:
            state = install_states.find_state(tx, user.org, install, version)
        if state is None:
            raise NotFound("there is no such version of the state", hint=_HINT)
        return StateReply(
            version=state.version,
            at=state.at,
            cause=state.cause,
            workflow_id=state.workflow_id,
            document=show_json(complete(state.document)),
        )

    return await deps.db.read(show)


async def show_readme(deps: Deps, user: User, install: InstallId) -> ReadmeReply:
    """Render the app's README; where that fails the text stays as it is, with a warning."""

    def show(tx: Tx, texts: Renderings) -> ReadmeReply:
        app_install = get_app_install(tx, user, install, Right.READ)
        metadata = find_definition(tx, user.org, app_install.config_id, Metadata)
        text = "" if metadata is None else metadata.readme
        if not text:
            warning = "the app has no README: name one as `readme` in its metadata.toml"
            return ReadmeReply(text="", rendered=False, warnings=[warning])
        name, state = read_named_state(tx, user.org, install)
        done = texts.render(tx, text, {ROOT: state}, name)
        if isinstance(done, Fault):
            where = f"line {done.position.line}, column {done.position.column}"
            warning = " ".join(filter(None, [f"{where}: {done.message}.", done.hint]))
            return ReadmeReply(text=text, rendered=False, warnings=[warning])
        return ReadmeReply(text=done, rendered=True, warnings=[])

    return await read_rendered(deps, user.org, show)


_HINT = "Versions count from 1; without a version you get the newest."
