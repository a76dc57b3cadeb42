"""Inputs of runbooks that nobody but the job may see."""

import shutil
from pathlib import Path

from sqlalchemy import select

from exclave.control.deps import Deps
from exclave.control.installs import runbooks
from exclave.control.installs.sensitive_inputs import get_sensitive
from exclave.domain.identity import InstallId, User
from exclave.domain.jobs import ExecutionId
from exclave.storage.tables import metadata
from exclave.wire.actions import RunRunbook
from exclave.wire.specs import ActionSpec
from tests.support.install_fixture import NOTICEBOARD, provision


async def test_a_sensitive_input_of_a_runbook_reaches_only_the_job_that_names_it(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    app = shutil.copytree(NOTICEBOARD, tmp_path / "noticeboard")
    (app / "runbooks" / "login.toml").write_text(
        'name = "login"\n[[input]]\nname = "password"\nsensitive = true\nrequired = true\n'
        '[[steps]]\nname = "use"\ntype = "action"\ninline_contents = "#!/bin/sh\\ntrue"\n'
        'env_vars = { PASSWORD = "{{ .runbook_inputs.password }}" }\n'
    )
    life = await provision(deps, user, app)
    wish = RunRunbook(runbook="login", inputs={"password": "hunter2"})

    begun = await runbooks.run_runbook(deps, user, InstallId(life.install), wish)
    await life.step()
    offer = (await life.poll())[0]
    await life.peer.start(offer.execution_id, offer.epoch)
    given = await get_sensitive(deps, life.peer.who, ExecutionId(offer.execution_id), offer.epoch)

    spec = life.open(offer).spec
    assert isinstance(spec, ActionSpec)
    assert spec.steps[0].env == {"PASSWORD": "((exclave:input:runbook/password))"}
    assert given.values == {"runbook/password": "hunter2"}
    assert "hunter2" not in begun.model_dump_json()
    tables = await deps.db.read(
        lambda tx: [str(tx.all(select(table))) for table in metadata.sorted_tables]
    )
    assert not [text for text in tables if "hunter2" in text]
