"""The files of a cloud's Stack as customers fetch them: archives by form, with the same bytes."""

import io
import zipfile

from exclave.control.workers.render_stack import ServedFile, render_stack
from tests.support import aws_stacks, gcp_stacks


def list_names(archive: ServedFile) -> set[str]:
    with zipfile.ZipFile(io.BytesIO(archive.data)) as packed:
        return set(packed.namelist())


def test_a_stack_of_google_cloud_has_an_archive_for_each_program_that_applies_it() -> None:
    files, findings = render_stack(gcp_stacks.make_model(roles=gcp_stacks.ROLES[:-1]), [])

    assert findings == ()
    served = {file.name: file for file in files}
    assert [name for name in served if "/" not in name] == [
        "gcp.zip", "infrastructure-manager.zip", "PERMISSIONS.md", "permissions.json",
    ]  # fmt: skip
    modules = [list_names(served[f"{name}.zip"]) for name in ("gcp", "infrastructure-manager")]
    assert modules[0] == modules[1]
    assert {"main.tf.json", "values.example.tfvars"} < modules[0]
    again, _ = render_stack(gcp_stacks.make_model(roles=gcp_stacks.ROLES[:-1]), [])
    assert [file.data for file in again] == [file.data for file in files]


def test_a_stack_of_aws_has_its_template_under_a_name_that_never_changes() -> None:
    served = {file.name: file for file in render_stack(aws_stacks.make_model(), [])[0]}

    assert served["aws.json"].data == served["aws.template.json"].data
    assert list_names(served["aws.zip"]) == {
        name.removeprefix("terraform/") for name in served if name.startswith("terraform/")
    }
    assert "cloudformation.zip" not in served
