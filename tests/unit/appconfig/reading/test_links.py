from pathlib import Path

import pytest

from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.read_app import read_app
from exclave.appconfig.reading.directory import Limits
from tests.unit.appconfig.directories import REPO, codes, make_app

HELM = 'name = "web"\ntype = "helm_chart"\nchart_name = "acme-web"\n' + REPO
FILE = '\n[[values_file]]\ncontents = "./v.yaml"\n'


def test_links_to_files_and_folders_beside_the_app_are_followed(tmp_path: Path) -> None:
    app = make_app(tmp_path, {})
    shared = tmp_path / "shared"
    (shared / "more").mkdir(parents=True)
    (shared / "web.toml").write_text(HELM)
    (shared / "more" / "other.toml").write_text(HELM.replace("web", "other"))
    (app / "components" / "web.toml").symlink_to("../../shared/web.toml")
    (app / "components" / "more").symlink_to("../../shared/more")

    reading = read_app(app)

    assert {each.name for each in reading.app.components} == {"api", "database", "web", "other"}
    assert reading.ok


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    app = make_app(tmp_path, {})
    (app / "components" / "again").symlink_to(".")

    reading = read_app(app)

    assert [each.name for each in reading.app.components] == ["api", "database"]


def test_links_that_multiply_come_to_an_end(tmp_path: Path) -> None:
    app = make_app(tmp_path, {})
    for level in range(20):
        folder = app / "components" / f"level{level}"
        folder.mkdir()
        for side in "ab":
            (folder / side).symlink_to(f"../level{level + 1}")

    reading = read_app(app, limits=Limits(entries=2000))

    assert codes(reading) == {"too_many_files"}


@pytest.mark.parametrize("target", ["/etc/hostname", "../../../../../../../etc/hostname"])
def test_a_link_out_of_the_repository_is_not_opened(tmp_path: Path, target: str) -> None:
    app = make_app(tmp_path, {"components/web.toml": HELM + FILE})
    (app / "components" / "v.yaml").symlink_to(target)

    reading = read_app(app)

    assert codes(reading) == {"file_outside"}


def test_a_hidden_file_beside_the_app_is_not_opened_through_a_link(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "key").write_text("secret")
    app = make_app(tmp_path, {"components/web.toml": HELM + FILE})
    (app / "components" / "v.yaml").symlink_to("../../.ssh/key")

    assert codes(read_app(app)) == {"file_outside"}


def test_a_link_that_git_wrote_as_text_is_followed(tmp_path: Path) -> None:
    shared = {"../shared/web.toml": HELM + FILE, "../shared/v.yaml": "a: b\n"}
    links = {
        "components/web.toml": "../../shared/web.toml\n",
        "components/v.yaml": "../../shared/v.yaml",
    }
    app = make_app(tmp_path, {**shared, **links})

    reading = read_app(app)

    chart = next(each for each in reading.app.list(HelmChart) if each.name == "web")
    assert (codes(reading), reading.ok) == ({"link_as_text"}, True)
    assert chart.values_file[0].contents == "a: b\n"


@pytest.mark.parametrize(
    "text", ["../../../../../../../etc/hostname", "web.toml", "./gone.toml", "../.."]
)
def test_a_text_that_leads_nowhere_is_a_text(text: str, tmp_path: Path) -> None:
    app = make_app(tmp_path, {"components/web.toml": text})

    assert codes(read_app(app)) == {"toml_syntax"}
