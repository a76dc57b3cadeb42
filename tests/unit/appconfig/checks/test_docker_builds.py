"""Mistakes in components that are built from a Dockerfile."""

from pathlib import Path

import pytest

from tests.unit.appconfig.directories import REPO, codes, read

BUILD = 'name = "web"\ntype = "docker_build"\ndockerfile = "Dockerfile"\n'


def test_every_key_of_a_build_is_accepted(tmp_path: Path) -> None:
    keys = (
        'context = "web"\ntarget = "release"\nplatforms = ["linux/amd64", "linux/arm/v7"]\n'
        'secrets = ["npm_token"]\nbuild_args = { VERSION = "1" }\n'
    )

    assert not codes(read(tmp_path, {"components/web.toml": BUILD + keys + REPO}))


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ('context = "../elsewhere"\n', "bad_format"),
        ('platforms = ["arm64"]\n', "bad_format"),
        ('secrets = ["NPM TOKEN"]\n', "bad_name"),
        ('secrets = ["npm_token"]\nbuild_args = { NPM_TOKEN = "x" }\n', "conflict"),
    ],
)
def test_a_mistake_in_a_build_is_found(tmp_path: Path, keys: str, code: str) -> None:
    assert codes(read(tmp_path, {"components/web.toml": BUILD + keys + REPO})) == {code}
