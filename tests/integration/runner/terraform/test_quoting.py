"""Strings that we quote mean the same to Terraform, whatever is in them."""

import base64
import json
import subprocess
from pathlib import Path

from exclave.base.hcl import quote

NASTY = ["", '"', "\\", '\\"', "${x}", "$${x}", "$$${x}", "%{ if true }", "%%{x}", "$", "$$", "${", "a\nb\r\tc",
         "\x00\x1b\x7f\x9b\u2028\u202e", "\U000e0041 😀 é", '"\n}\nmodule "evil" {\n', "*/ # //", "\b\f"]  # fmt: skip


def test_terraform_reads_back_what_was_quoted(tool: Path, tmp_path: Path) -> None:
    texts = ", ".join(map(quote, NASTY))
    told = subprocess.run(
        [str(tool), "console"],
        input=f"base64encode(jsonencode([{texts}]))\n",
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=True,
    )

    assert json.loads(base64.b64decode(told.stdout.strip())) == NASTY
