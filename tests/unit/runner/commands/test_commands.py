"""Command lines, as text."""

from functools import partial
from pathlib import Path

from exclave.runner.commands import helm, opa, terraform


def test_lines_of_terraform_name_files_and_take_no_input() -> None:
    files = [Path("/v/a.tfvars"), Path("/v/b.tfvars.json")]
    line = terraform.plan("/t", out=Path("/p"), var_files=files, destroy=True)

    assert " ".join(line) == (
        "/t plan -input=false -lock=false -json -destroy -var-file=/v/a.tfvars"
        " -var-file=/v/b.tfvars.json -out=/p"
    )
    assert " ".join(terraform.apply("/t", Path("/p"))) == "/t apply -input=false -json /p"
    assert " ".join(terraform.init("tofu")) == "tofu init -input=false -no-color"
    assert " ".join(terraform.show("tofu", Path("/p"))) == "tofu show -json /p"


def test_lines_of_opa_name_policies_and_the_document() -> None:
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


def test_lines_of_helm_hold_files_and_no_values() -> None:
    render = helm.render("helm", "web", Path("/c"), "app", values=Path("/v.json"))
    upgrade = helm.upgrade(
        "helm",
        "web",
        Path("/c.tgz"),
        "app",
        values=Path("/v.json"),
        wait="hookOnly",
        timeout_s=60,
        labels={"a": "b", "c": "d"},
        take_ownership=True,
    )

    assert " ".join(render) == (
        "helm upgrade --install web /c --namespace app --create-namespace --dry-run=server"
        " --output=json --server-side=true --force-conflicts --reset-values --skip-crds"
        " --values=/v.json"
    )
    assert " ".join(upgrade) == (
        "helm upgrade --install web /c.tgz --namespace app --output=json --server-side=true"
        " --force-conflicts --reset-values --skip-crds --wait=hookOnly --timeout=60s"
        " --history-max=10 --labels=a=b,c=d --take-ownership --values=/v.json"
    )
    assert " ".join(helm.uninstall("helm", "web", "app", timeout_s=9)) == (
        "helm uninstall web --namespace app --wait=hookOnly --ignore-not-found --timeout=9s"
    )
