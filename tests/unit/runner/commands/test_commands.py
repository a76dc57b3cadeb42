"""Command lines, as text."""

from functools import partial
from pathlib import Path

from exclave.runner.commands import opa, terraform


def test_lines_of_terraform() -> None:
    files = [Path("/v/a.tfvars"), Path("/v/b.tfvars.json")]
    line = terraform.plan("/t", out=Path("/p"), var_files=files, destroy=True)

    assert " ".join(line) == (
        "/t plan -input=false -lock=false -json -destroy -var-file=/v/a.tfvars"
        " -var-file=/v/b.tfvars.json -out=/p"
    )
    assert " ".join(terraform.apply("/t", Path("/p"))) == "/t apply -input=false -json /p"
    assert " ".join(terraform.init("tofu")) == "tofu init -input=false -no-color"
    assert " ".join(terraform.show("tofu", Path("/p"))) == "tofu show -json /p"


def test_lines_of_opa() -> None:
    evaluate = partial(
        opa.evaluate,
        "opa",
        policies=[Path("/p.rego"), Path("/d.rego")],
        document=Path("/i.json"),
        query="data.nuon",
        limit_s=60.0,
    )

    assert evaluate(old_syntax=False) == (
        "opa",
        "eval",
        "--format=json",
        "--timeout=60s",
        "--data=/p.rego",
        "--data=/d.rego",
        "--input=/i.json",
        "data.nuon",
    )
    assert "--v0-compatible" in evaluate(old_syntax=True)
