"""Fuzzing: damage the fixture apps at random; whatever happens must be a finding, and quickly.

`python -m tests.unit.appconfig.fuzz --seeds 2000 --start 0`; a failing seed can be run alone.
"""

import argparse
import json
import random
import shutil
import tempfile
import time
from pathlib import Path

from exclave.appconfig.read_app import read_app
from exclave.appconfig.rendering import render_app
from exclave.cli.apps.findings import describe, write_findings
from tests.unit.appconfig.directories import APPS, WHOLE

PIECES = (
    "{{", "}}", "{{ .nuon", "{{ end }}", '"""', "'''", '"', "'", "[[", "]]", "[", "]", "=", "#",
    "\n", "\\", "./", "../", "name", "type", "{{ range .nuon }}", '{{ template "x" }}', "\x00",
    "{{ .nuon.components.api.outputs.x }}", "é", "\u2028", "1e999", "nan", "0x", "''", "{}", "-",
)  # fmt: skip
SLOW_S = 10.0


def run_seed(seed: int) -> None:
    """Damage one app in one way, and read it."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        app = Path(folder) / "app"
        shutil.copytree(APPS / chance.choice(WHOLE), app, symlinks=True)
        files = sorted(file for file in app.rglob("*") if file.is_file())
        for _ in range(chance.randint(1, 4)):
            damage(chance, chance.choice(files), files)
        started = time.monotonic()
        reading = read_app(app)
        json.dumps(describe(reading))
        write_findings(reading, colour=False)
        list(render_app(reading.app, {}))
        assert time.monotonic() - started < SLOW_S, f"seed {seed} is slow"


def damage(chance: random.Random, file: Path, files: list[Path]) -> None:
    """Change a file: cut, repeat, insert, swap, empty, remove."""
    if not file.is_file():
        return
    data = file.read_bytes()
    at = chance.randint(0, len(data))
    to = min(len(data), at + chance.randint(0, 40))
    match chance.randint(0, 6):
        case 0:
            data = data[:at] + data[to:]
        case 1:
            data = data[:to] + data[at:to] * chance.randint(1, 50) + data[to:]
        case 2 | 3:
            data = data[:at] + chance.choice(PIECES).encode() * chance.randint(1, 3) + data[at:]
        case 4:
            data = data[:at] + bytes([chance.randint(0, 255)]) + data[at + 1 :]
        case 5:
            other = chance.choice(files)
            data = other.read_bytes() if other.is_file() else b""
        case _:
            file.unlink()
            return
    file.write_bytes(data)


def main() -> None:
    """Run many seeds, and say which one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    for seed in range(options.start, options.start + options.seeds):
        try:
            run_seed(seed)
        except BaseException:
            print(f"app directory: seed {seed} failed")
            raise
    print(f"app directory: {options.seeds} seeds from {options.start} survived")


if __name__ == "__main__":
    main()
