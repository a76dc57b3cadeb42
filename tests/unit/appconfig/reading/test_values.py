from pathlib import Path

import pytest

from exclave.appconfig.model.kinds.container_image import ContainerImage
from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.model.kinds.installs import Install
from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest
from exclave.appconfig.model.kinds.other_components import Pulumi
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.appconfig.model.natives import write_text
from tests.unit.appconfig.directories import REPO, codes, find, read

HELM = 'name = "web"\ntype = "helm_chart"\nchart_name = "acme-web"\n'
MODULE = 'name = "web"\ntype = "terraform_module"\nterraform_version = "1.11.3"\n'


def test_native_values_of_maps_become_text_in_one_way(tmp_path: Path) -> None:
    values = """
[vars]
text = "a"
whole = 3
real = 0.5
on = true
day = 2030-01-02
list = ["a", 1, false]
table = { b = 2, a = [1] }
"""

    reading = read(tmp_path, {"components/web.toml": MODULE + REPO + values})

    assert dict(reading.app.list(TerraformModule)[-1].vars) == {
        "text": "a",
        "whole": "3",
        "real": "0.5",
        "on": "true",
        "day": "2030-01-02",
        "list": '["a",1,false]',
        "table": '{"a":[1],"b":2}',
    }
    assert codes(reading) == set()


def test_tables_in_helm_values_become_dotted_keys(tmp_path: Path) -> None:
    values = '[values]\nimage.tag = "1"\n[values.a.b]\nc = true\n'

    reading = read(tmp_path, {"components/web.toml": HELM + REPO + values})

    assert reading.app.list(HelmChart)[-1].values == {"image.tag": "1", "a.b.c": "true"}


def test_inputs_of_an_install_are_merged_and_the_later_wins(tmp_path: Path) -> None:
    text = 'name = "i"\n[[inputs]]\ndomain = "a"\n[[inputs]]\ndomain = "b"\n'

    assert read(tmp_path, {"installs/i.toml": text}).app.list(Install)[0].inputs == {"domain": "b"}


def test_old_spellings_are_rewritten(tmp_path: Path) -> None:
    reading = read(tmp_path, {"runner.toml": 'runner_type = "aws-eks"\n'})

    assert reading.app.cloud == "aws"
    assert codes(reading) == {"deprecated", "missing_role"}


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('take_ownership = "true"', "Write take_ownership = true."),
        ("max_auto_retries = true", "Write max_auto_retries = 1."),
        ('max_auto_retries = "3"', "Write max_auto_retries = 3."),
        ('dependencies = "api"', 'Write ["api"].'),
        ("labels = 1", "Example: labels"),
        ("name = 5", 'Write name = "5".'),
        ("deploy_timeout = 5", 'Write deploy_timeout = "5".'),
        ("health = 1", "Write [health]."),
        ("values_file = 1", "Write [[values_file]]."),
        ("dependencies = [[1]]", "Example: dependencies"),
    ],
)
def test_a_wrong_type_comes_with_the_right_one(tmp_path: Path, line: str, hint: str) -> None:
    head = HELM.replace('name = "web"\n', "") if line.startswith("name") else HELM

    found = find(read(tmp_path, {"components/web.toml": f"{head}{line}\n{REPO}"}), "wrong_type")

    assert [each.hint[: len(hint)] for each in found] == [hint]


def test_a_number_may_stand_where_nothing_is_lost(tmp_path: Path) -> None:
    text = 'name = "web"\ntype = "container_image"\n[public]\nimage_url = "a/b"\ntag = 15\n'

    assert codes(read(tmp_path, {"components/web.toml": text})) == set()


@pytest.mark.parametrize("version", ["1.1", "2030-01-01"])
def test_a_real_number_or_date_may_not_because_something_is(tmp_path: Path, version: str) -> None:
    text = f'name = "web"\ntype = "container_image"\n[public]\nimage_url = "a/b"\ntag = {version}\n'

    assert "wrong_type" in codes(read(tmp_path, {"components/web.toml": text}))


def test_strict_makes_unknown_keys_errors(tmp_path: Path) -> None:
    reading = read(tmp_path, {"metadata.toml": 'version = "v2"\nx = 1\n'}, strict=True)

    assert not reading.ok
    assert codes(reading) == {"unknown_key"}


def test_keys_of_labels_are_no_templates(tmp_path: Path) -> None:
    text = 'version = "v2"\n[default_labels]\n"{{ .nuon.install.id }}" = "x"\n'

    assert codes(read(tmp_path, {"metadata.toml": text})) == {"bad_format"}


def test_timeouts_default_by_the_type_of_component() -> None:
    kinds = (TerraformModule, HelmChart, KubernetesManifest, ContainerImage, Pulumi)

    assert [(kind().build_timeout, kind().deploy_timeout) for kind in kinds] == [
        ("5m", "60m"),
        ("5m", "30m"),
        ("5m", "15m"),
        ("15m", "5m"),
        ("5m", "60m"),
    ]


def test_write_text_refuses_what_toml_does_not_have() -> None:
    with pytest.raises(TypeError):
        write_text(object())
