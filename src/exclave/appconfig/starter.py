"""The starter app: it deploys offline on any machine that has Terraform."""

import re
from collections.abc import Mapping
from pathlib import Path

from exclave.base.errors import Conflict, InvalidInput

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_TITLE = "<TITLE>"

FILES: Mapping[str, str] = {
    "metadata.toml": """\
version = "v2"
display_name = "<TITLE>"
description = "A small app to start from."
readme = "./README.md"
""",
    "README.md": """\
# <TITLE>

Install `{{ .nuon.install.id }}` greets {{ .nuon.inputs.inputs.who }}.
""",
    "runner.toml": """\
# The runner works on the machine that it is started on: a laptop, a VM.
# For a cloud write "aws", "azure" or "gcp"; then the app needs roles in permissions/.
runner_type = "local"
""",
    "inputs.toml": """\
[[group]]
name = "greeting"
display_name = "Greeting"
description = "What the app says."

[[input]]
name = "who"
display_name = "Who"
description = "Who is greeted."
group = "greeting"
default = "world"
""",
    "sandbox.toml": """\
# What an install stands on. `repo = "."` is this directory; for another one write "owner/name".
[public_repo]
repo = "."
directory = "modules/sandbox"

[vars]
install_id = "{{ .nuon.install.id }}"
""",
    "modules/sandbox/main.tf": """\
variable "install_id" {
  type = string
}

resource "terraform_data" "base" {
  input = { name = "hello-${var.install_id}" }
}

output "name" {
  value = terraform_data.base.output.name
}
""",
    "components/greeting.toml": """\
name = "greeting"
type = "terraform_module"

[public_repo]
repo = "."
directory = "modules/greeting"

[vars]
who  = "{{ .nuon.inputs.inputs.who }}"
base = "{{ .nuon.sandbox.outputs.name }}"
""",
    "modules/greeting/main.tf": """\
variable "who" {
  type = string
}

variable "base" {
  type = string
}

resource "terraform_data" "greeting" {
  input = "Hello ${var.who}, this is ${var.base}"
}

output "text" {
  value = terraform_data.greeting.output
}
""",
    "components/page.toml": """\
# It reads an output of `greeting`, so it is deployed after it.
name = "page"
type = "terraform_module"

[public_repo]
repo = "."
directory = "modules/page"

[vars]
title = "{{ .nuon.components.greeting.outputs.text }}"
""",
    "modules/page/main.tf": """\
variable "title" {
  type = string
}

resource "terraform_data" "page" {
  input = "<h1>${var.title}</h1>"
}

output "html" {
  value = terraform_data.page.output
}
""",
    "actions/greet.toml": """\
name = "greet"
timeout = "1m"

[[triggers]]
type = "manual"

[[triggers]]
type = "post-deploy-component"
component_name = "page"

[[steps]]
name = "greet"
inline_contents = "./greet.sh"

[steps.env_vars]
WHO  = "{{ .nuon.inputs.inputs.who }}"
PAGE = "{{ .nuon.components.page.outputs.html }}"
""",
    "actions/greet.sh": """\
#!/bin/sh
set -eu
echo "The page for $WHO is $PAGE"
echo "greeted=$WHO" >> "$NUON_ACTIONS_OUTPUT_FILEPATH"
""",
}


def write_starter(directory: Path) -> list[str]:
    """Write the app into a new directory and return its files."""
    name = directory.name
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"`{name}` cannot be the name of an app", hint="Use a-z, 0-9, `-` and `_`."
        )
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise Conflict(
            f"`{directory}` exists and is not empty",
            hint="Choose another name; nothing was written.",
        )
    title = name.replace("-", " ").replace("_", " ").title()
    for path, content in FILES.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content.replace(_TITLE, title), encoding="utf-8")
        if path.endswith(".sh"):
            file.chmod(0o755)
    return list(FILES)
