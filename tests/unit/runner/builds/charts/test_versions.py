"""Which version of a chart a wish chooses; `helm pull --version` chooses the same."""

import subprocess
from pathlib import Path

import pytest

from exclave.runner.builds.charts.versions import choose_version
from tests.support.charts import serve_charts
from tests.support.kubernetes_tools import need_helm

VERSIONS = [
    "0.0.1",
    "0.0.2",
    "0.1.0",
    "0.2.3",
    "1.0.0-alpha.2",
    "1.0.0-alpha.10",
    "1.0.0",
    "1.2.0",
    "1.2.3",
    "1.2.4-rc.1",
    "1.10.0",
    "2.0.0",
    "2.1.0+build.7",
    "3.0.0-beta.1",
]


CHOICES = {
    "": "2.1.0+build.7",
    "1.2.3": "1.2.3",
    "3.0.0-beta.1": "3.0.0-beta.1",
    "1.2": "1.2.3",
    "1": "1.10.0",
    "1.x": "1.10.0",
    "^1.2.0": "1.10.0",
    "~1.2": "1.2.3",
    "~1.2.0-0": "1.2.4-rc.1",
    "^0.1": "0.1.0",
    "^0.0.1": "0.0.1",
    ">=1.0.0 <2.0.0": "1.10.0",
    ">1.2, <1.10.0": None,
    "1.0 - 1.2": "1.2.3",
    "0.2.x || 1.0.x": "1.0.0",
    "!=2.1.0": "2.0.0",
    "<=1.2": "1.2.3",
    ">1.10.0": "2.1.0+build.7",
    ">0.0.0-0": "3.0.0-beta.1",
    "~1.0.0-alpha": "1.0.0",
    "<1.0.0-beta": "1.0.0-alpha.10",
    "v1.2.3": "1.2.3",
    "5.0.0": None,
}


@pytest.mark.parametrize(("wanted", "chosen"), CHOICES.items())
def test_a_wish_chooses_a_version(wanted: str, chosen: str | None) -> None:
    assert choose_version(VERSIONS, wanted) == chosen


@pytest.mark.parametrize("wanted", ["latest", "1.2.3.4", ">=", "^1.2 foo", "!=x", "<=1.2-beta"])
def test_what_is_no_constraint_is_refused(wanted: str) -> None:
    with pytest.raises(ValueError, match=r"neither a version|means nothing"):
        choose_version(VERSIONS, wanted)


def test_helm_chooses_the_same_versions(tmp_path: Path) -> None:
    helm = need_helm()
    with serve_charts(tmp_path / "charts") as repository:
        for version in VERSIONS:
            repository.add("web", version)
        chosen = {
            wanted: _pull(helm, tmp_path / "out" / str(number), repository.url, wanted)
            for number, wanted in enumerate(CHOICES)
        }

    assert chosen == CHOICES


def _pull(helm: Path, target: Path, url: str, wanted: str) -> str | None:
    argv = [str(helm), "pull", "web", "--repo", url, "-d", str(target)]
    env = {"HOME": str(target)}
    done = subprocess.run(
        [*argv, "--version", wanted] if wanted else argv, env=env, capture_output=True, check=False
    )
    if done.returncode:
        return None
    return next(target.glob("*.tgz")).name.removeprefix("web-").removesuffix(".tgz")
