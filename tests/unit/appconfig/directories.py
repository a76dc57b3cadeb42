"""App directories for tests: the fixtures, the broken ones, and small ones made on the spot."""

import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exclave.appconfig.diagnostics.report import Diagnostic
from exclave.appconfig.read_app import CheckedApp, read_app
from exclave.appconfig.reading.directory import Limits
from exclave.appconfig.reading.fetching import HttpsFetcher
from exclave.cli.apps.findings import write_findings

APPS = Path(__file__).parents[2] / "fixtures" / "apps"
BASE = APPS / "base"
BROKEN = APPS / "broken"
WHOLE = tuple(sorted(each.name for each in APPS.iterdir() if (each / "metadata.toml").exists()))

REPO = '[public_repo]\nrepo = "acme/x"\ndirectory = "."\nbranch = "main"\n'


def make_app(folder: Path, files: Mapping[str, str], *, bare: bool = False) -> Path:
    """Copy the base app, and put files over it."""
    app = folder / "acme"
    if bare:
        app.mkdir(parents=True)
    else:
        shutil.copytree(BASE, app, symlinks=True)
    for path, content in files.items():
        file = app / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return app


def read(folder: Path, files: Mapping[str, str], **options: Any) -> CheckedApp:
    """Read the base app with files over it."""
    return read_app(make_app(folder, files), **options)


def find(reading: CheckedApp, code: str) -> list[Diagnostic]:
    """List the findings with a code."""
    return [each for each in reading.diagnostics if each.code == code]


def codes(reading: CheckedApp) -> set[str]:
    """Name the codes of all findings."""
    return {str(each.code) for each in reading.diagnostics}


def read_broken(name: str, folder: Path) -> CheckedApp:
    """Read a broken app: the base app, with what its description changes."""
    told = tomllib.loads((BROKEN / f"{name}.toml").read_text())
    app = make_app(folder, told.get("files", {}))
    for path in told.get("remove", []):
        shutil.rmtree(app / path) if (app / path).is_dir() else (app / path).unlink()
    for path, target in told.get("links", {}).items():
        (app / path).symlink_to(target)
    limits = Limits(**told.get("limits", {}))
    fetcher = HttpsFetcher() if told.get("fetch") else None
    return read_app(app, limits=limits, fetcher=fetcher, before=told.get("before", {}))


def show_broken(name: str) -> str:
    """Return what a person sees of a broken app, as it is printed."""
    with tempfile.TemporaryDirectory() as folder:
        return write_findings(read_broken(name, Path(folder)), colour=False) + "\n"


if __name__ == "__main__":
    for file in sorted(BROKEN.glob("*.toml")):
        file.with_suffix(".txt").write_text(show_broken(file.stem))
    sys.exit(0)
