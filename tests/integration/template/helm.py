"""Renders templates with the real Go engine: the helm program, one chart for many templates."""

import base64
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.integration.template.generator import Case

PROGRAM = shutil.which("helm", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")
_FAILED = re.compile(r"case(\d+)")


class HelmFailed(Exception):  # noqa: N818
    """Helm refused a chart."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = _FAILED.search(message)
        self.number = int(found[1]) if found else None


def render_all(folder: Path, cases: Sequence[Case], values: object) -> dict[int, bytes]:
    """Render cases that all succeed; each result comes back as base 64, so that no byte is lost."""
    chart = _write_chart(folder, values)
    parts = "".join(
        f'{case.parts}{{{{define "case{case.number}"}}}}{case.body}{{{{end}}}}\n' for case in cases
    )
    lines = "".join(
        f'case{case.number}: "{{{{include "case{case.number}" (deepCopy .Values.root) | b64enc}}}}"\n'
        for case in cases
    )
    (chart / "templates" / "_parts.tpl").write_text(parts)
    (chart / "templates" / "all.yaml").write_text(lines)
    done = _run(chart)
    if done.returncode:
        raise HelmFailed(done.stderr)
    pairs = (line.split(": ") for line in done.stdout.splitlines() if line.startswith("case"))
    return {int(name[4:]): base64.b64decode(text.strip('"')) for name, text in pairs}


def refuses(folder: Path, case: Case, values: object) -> bool:
    """Tell whether helm gives an error for one template."""
    try:
        render_all(folder, [case], values)
    except HelmFailed:
        return True
    return False


def _write_chart(folder: Path, values: object) -> Path:
    (folder / "templates").mkdir(parents=True, exist_ok=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: cases\nversion: 0.1.0\n")
    (folder / "values.yaml").write_text(json.dumps({"root": values}))
    return folder


def _run(chart: Path) -> subprocess.CompletedProcess[str]:
    assert PROGRAM is not None
    return subprocess.run(
        [PROGRAM, "template", "x", str(chart)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
