"""A small working app to start from."""

import re
from collections.abc import Mapping
from pathlib import Path

from exclave.base.errors import Conflict, InvalidInput

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")

FILES: Mapping[str, str] = {
    "metadata.toml": """\
version = "v2"
display_name = "{title}"
description = "A small app to start from."
readme = "./README.md"
""",
    "README.md": """\
# {title}

Install `{{{{ .nuon.install.id }}}}` greets {{{{ .nuon.inputs.inputs.who }}}}.
""",
    "runner.toml": """\
# The runner works on the machine that it is started on: a laptop, a VM.
# For a cloud write "aws", "azure" or "gcp"; then the app needs roles in permissions/.
runner_type = "local"
""",
    "sandbox.toml": """\
# What an install stands on. This module makes names and nothing else.
terraform_version = "1.11.3"

[public_repo]
repo = "cloudposse/terraform-null-label"
directory = "."
branch = "0.25.0"

[vars]
name = "{{{{ .nuon.install.id }}}}"
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
    "components/label.toml": """\
name = "label"
type = "terraform_module"
terraform_version = "1.11.3"

[public_repo]
repo = "cloudposse/terraform-null-label"
directory = "."
branch = "0.25.0"

[vars]
name = "hello-{{{{ .nuon.inputs.inputs.who }}}}"
""",
    "actions/greet.toml": """\
name = "greet"
timeout = "1m"

[[triggers]]
type = "manual"

[[triggers]]
type = "post-deploy-component"
component_name = "label"

[[steps]]
name = "greet"
inline_contents = "./greet.sh"

[steps.env_vars]
WHO = "{{{{ .nuon.inputs.inputs.who }}}}"
LABEL = "{{{{ .nuon.components.label.outputs.id }}}}"
""",
    "actions/greet.sh": """\
#!/bin/sh
set -eu
echo "Hello $WHO, this is $LABEL"
echo "greeted=$WHO" >> "$NUON_ACTIONS_OUTPUT_FILEPATH"
""",
}


def write_starter(directory: Path) -> list[str]:
    """Write the app into a new directory, and list its files."""
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
        file.write_text(content.format(title=title), encoding="utf-8")
        if path.endswith(".sh"):
            file.chmod(0o755)
    return list(FILES)
