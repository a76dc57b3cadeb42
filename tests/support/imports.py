"""The modules that a program imports, measured in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Collection


def list_imported(code: str, names: Collection[str]) -> list[str]:
    """Run Python code and return which of these modules it imported."""
    tell = (
        f"import json, sys\nprint(json.dumps([x for x in {list(names)!r} if x in sys.modules]))\n"
    )
    argv = [sys.executable, "-c", f"{code}\n{tell}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout.splitlines()[-1]))
