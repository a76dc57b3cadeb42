"""Terraform providers for tests: from a mirror on this machine, or from the registry."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.tools import FOLDER, give_up, locked, need_terraform

AWS = ("hashicorp/aws", "5.100.0")
_REGISTRY = "registry.terraform.io"
_FETCH_S = 900


def need_aws_provider() -> Path:
    """Return a folder that Terraform can use as a mirror, with the provider for AWS in it.

    `EXCLAVE_TEST_PROVIDERS` names such a folder. Otherwise the folders where Terraform itself
    looks, and those below /opt, are searched; a machine without one fetches the provider once.
    """
    source, _ = AWS
    for folder in _list_mirrors():
        if any((folder / _REGISTRY / source).glob("*/linux_*/terraform-provider-*")):
            return folder
    folder = FOLDER / "providers"
    with locked(folder):
        if not (folder / _REGISTRY / source).is_dir():
            _fetch(folder)
    return folder


def _list_mirrors() -> Iterator[Path]:
    if named := os.environ.get("EXCLAVE_TEST_PROVIDERS"):
        yield Path(named)
    yield Path.home() / ".terraform.d" / "plugins"
    for share in ("/usr/local/share", "/usr/share"):
        yield Path(share) / "terraform" / "plugins"
    yield from sorted(found for found in Path("/opt").glob("*") if found.is_dir())


def _fetch(folder: Path) -> None:
    source, version = AWS
    wanted = {"aws": {"source": source, "version": version}}
    with TemporaryDirectory(prefix="provider-") as work:
        body = {"terraform": {"required_providers": wanted}}
        (Path(work) / "main.tf.json").write_text(json.dumps(body))
        done = subprocess.run(
            [str(need_terraform()), "providers", "mirror", str(folder)],
            cwd=work,
            capture_output=True,
            text=True,
            timeout=_FETCH_S,
            check=False,
        )
    if done.returncode:
        reason = done.stderr.strip()[-300:]
        give_up(f"the Terraform provider for AWS is not there and could not be fetched: {reason}")
