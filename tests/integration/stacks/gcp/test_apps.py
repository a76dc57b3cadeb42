"""Stacks of app directories, validated by Terraform with the schema of the real provider."""

from pathlib import Path

from exclave.appconfig.read_app import read_app
from exclave.domain.stacks import Cloud
from exclave.stacks.building.directory import build_from_directory
from exclave.stacks.building.example import make_example
from exclave.stacks.gcp.module import write_files
from exclave.stacks.gcp.stack import GcpStack
from tests.support.gcp_stacks import PROVIDERS
from tests.support.git import make_repo
from tests.support.stand_ins.module import StandInModule
from tests.unit.appconfig.directories import APPS


def test_apps_for_google_cloud_have_a_stack_that_terraform_accepts(tmp_path: Path) -> None:
    make_repo(tmp_path / "stacks.git", {"gcp/modules/network/main.tf": "locals {}\n"})
    for app in ("acme-gcp", "habits/odd-gcp"):
        checked = read_app(APPS / app)
        built = build_from_directory(checked, GcpStack(), make_example("x", Cloud.GCP), {})
        assert built.is_ok, app
        folder = tmp_path / Path(app).name
        folder.mkdir()
        (folder / ".gitconfig").write_text(
            f'[url "file://{tmp_path}/"]\n  insteadOf = "https://github.com/acme/"\n'
        )
        module = StandInModule(folder, write_files(built.model), PROVIDERS)
        module.configure()
        module.run("init", "-input=false")

        module.run("validate")
