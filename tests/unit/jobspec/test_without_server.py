"""Job specifications are made from the package of the runner, where no library of the server is."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.control.stacks.runner_package import load_package
from exclave.domain.intents import PlanPart
from exclave.jobspec.terraform import make_terraform_plan
from tests.unit.jobspec.jobspec_kit import plan_facts

PROGRAM = """
import importlib.abc, pkgutil, sys

SERVER = {
    "alembic", "cronsim", "fastapi", "greenlet", "obstore", "prometheus_client", "psycopg",
    "sqlalchemy", "starlette", "uvicorn", "uvloop", "yaml",
}

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in SERVER:
            raise ImportError(f"{name} is not on a runner")
        return None

sys.meta_path.insert(0, Refuse())

import exclave.jobspec
assert exclave.__file__.startswith(sys.argv[1]), exclave.__file__
for module in pkgutil.walk_packages(exclave.jobspec.__path__, "exclave.jobspec."):
    __import__(module.name)

from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.domain.intents import PlanPart
from exclave.jobspec.facts import PlanFacts
from exclave.jobspec.terraform import make_terraform_plan
from exclave.wire.specs import Artifact

artifact = Artifact(repository="apps/a", digest="sha256:" + "a" * 64)
facts = PlanFacts(artifact, lambda text, where: text, "")
module = TerraformModule(type="terraform_module", name="db", vars={"size": "1"})
print(make_terraform_plan(module, facts, PlanPart("component:db")).model_dump_json())
"""


def test_a_process_with_the_runners_package_only_makes_the_same_job(tmp_path: Path) -> None:
    zipfile.ZipFile(io.BytesIO(load_package().data)).extractall(tmp_path)
    module = TerraformModule(type="terraform_module", name="db", vars={"size": "1"})
    here = make_terraform_plan(module, plan_facts(), PlanPart("component:db"))

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == here.model_dump(mode="json")
