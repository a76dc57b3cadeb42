"""Install config files that are read separately from their app: one file or a folder."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Diagnostic, Report
from exclave.appconfig.model.app import Entry
from exclave.appconfig.model.kinds.installs import Install
from exclave.appconfig.reading.directory import Directory, Limits
from exclave.appconfig.reading.loading import Loader
from exclave.base.errors import InvalidInput

_KNOWN = frozenset({
    "name", "approval_option", "inputs", "labels", "component_toggles", "components",
    "aws_account", "azure_account", "gcp_account",
})  # fmt: skip
"""The keys that this version supports."""


@dataclass(frozen=True, slots=True)
class InstallFiles:
    """The installs in the files, and all diagnostics."""

    installs: Mapping[str, Install]
    """By file, in the order of their names."""
    diagnostics: tuple[Diagnostic, ...]
    ok: bool


def read_install_files(path: Path) -> InstallFiles:
    """Read one file, all `.toml` files below a folder, or those in `installs/` of an app."""
    if not path.exists():
        raise InvalidInput(f"there is no `{path}`", hint="Name a file or a folder of installs.")
    report = Report()
    wanted = Path(os.path.abspath(path))  # noqa: PTH100 - `resolve` would follow links
    if (wanted / "metadata.toml").is_file():
        wanted /= "installs"
    directory = Directory(wanted.parent, report, Limits())
    files = [wanted.name] if wanted.is_file() else directory.walk(wanted.name)
    if not files:
        raise InvalidInput(f"there is no .toml file below `{wanted}`")
    entries = Loader(directory, None).load_installs(files)
    for entry in entries:
        _check(entry, report)
    values = {entry.place.source.path: entry.value for entry in entries}
    installs = {file: value for file, value in values.items() if isinstance(value, Install)}
    return InstallFiles(installs, report.sorted(), report.ok)


def _check(entry: Entry, report: Report) -> None:
    """Report keys that this version does not support, so that none is silently ignored."""
    install = entry.value
    for key, field in install.FIELDS.items():
        if key not in _KNOWN and getattr(install, field.attribute) != field.default:
            message = f"`{key}` of an install is not supported yet"
            report.error(Code.NEEDLESS_KEY, entry.place.child(key), message, "Remove it for now.")
    if not isinstance(install, Install):
        return
    for key, value in install.labels.items():
        if "{{" in value:
            message = f"the label `{key}` is a template, which is not supported here yet"
            report.error(Code.NEEDLESS_KEY, entry.place.child("labels", key), message, "")
