"""A module of the vendor in the Stack, fetched by git at the version that the app names."""

import base64
import json
from pathlib import Path

from exclave.runner.cloud.document import parse_document
from exclave.stacks.gcp.module import write_files
from exclave.stacks.model import NestedModel
from tests.support.gcp_stacks import GIVEN, PROVIDERS, make_model
from tests.support.git import make_repo
from tests.support.stand_ins.module import StandInModule

TOOLS = """
variable "size" { type = string }
resource "google_service_account" "tools" { account_id = "tools-${var.size}" }
output "name" { value = google_service_account.tools.account_id }
output "sizes" { value = [1, 2] }
"""


def test_its_outputs_are_what_the_app_reads(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "stacks.git", {"gcp/tools/main.tf": TOOLS})
    repo.git("tag", "v1")
    repo.commit({"gcp/tools/main.tf": "newer and broken"})
    nested = NestedModel(
        "my-tools", 0, "acme/stacks//gcp/tools?ref=v1", parameters={"size": "${large}"}
    )
    module = StandInModule(
        tmp_path / "module", write_files(make_model(nested=(nested,))), PROVIDERS
    )
    (module.folder / ".gitconfig").write_text(
        f'[url "file://{tmp_path}/"]\n  insteadOf = "https://github.com/acme/"\n'
    )
    module.configure(**GIVEN)
    module.run("init", "-input=false")

    module.apply()

    text = module.read_resources()["google_secret_manager_secret_version.stack"]["secret_data"]
    written = json.loads(text)["nested_outputs_base64"]["my-tools"]
    assert base64.b64decode(written["name"]) == b"tools-${large}"
    outputs = parse_document(text).outputs["custom_nested_stacks"]
    assert outputs == {"my-tools": {"name": "tools-${large}", "sizes": "[1,2]"}}
