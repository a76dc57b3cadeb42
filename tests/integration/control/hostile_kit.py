"""An app in which one input reaches every kind of job, and values that nobody wants to see there."""

import json
from pathlib import Path
from typing import Any

from tests.support.apps import write_app

_INPUT = "{{ .nuon.inputs.inputs.msg }}"
_OUTPUT = "{{ .nuon.components.net.outputs.id }}"
_SOURCE = '[public_repo]\nrepo = "."\ndirectory = "module"\n'
_MODULE = 'type = "terraform_module"\nterraform_version = "1.11.0"\n'
_MANUAL = 'timeout = "1m"\n[[triggers]]\ntype = "manual"\n[[steps]]\nname = "go"\n'

FILES = {
    "metadata.toml": 'version = "v2"\ndescription = "x"\ndisplay_name = "x"\nreadme = "./README.md"\n',
    "runner.toml": 'runner_type = "local"\n',
    "README.md": "hi",
    "module/main.tf": 'output "x" { value = "1" }\n',
    "sandbox.toml": f'terraform_version = "1.11.0"\n{_SOURCE}[vars]\nmsg = "{_INPUT}"\n',
    "components/net.toml": f'name = "net"\n{_MODULE}{_SOURCE}',
    "components/web.toml": (
        f'name = "web"\n{_MODULE}deploy_timeout = "5m"\n{_SOURCE}'
        f'[vars]\nmsg = "{_INPUT}"\nid = "{_OUTPUT}"\n[env_vars]\nMSG = "{_INPUT}"\n'
    ),
    "inputs.toml": (
        '[[group]]\nname = "g"\ndisplay_name = "g"\ndescription = "g"\n[[input]]\nname = "msg"\n'
        'display_name = "m"\ndescription = "m"\ngroup = "g"\ndefault = "ok"\n'
    ),
    "actions/line.toml": f'name = "line"\n{_MANUAL}command = "echo {_INPUT} {_OUTPUT}"\n',
    "actions/empty.toml": f'name = "empty"\n{_MANUAL}command = "{_INPUT}"\n',
    "actions/text.toml": (
        f'name = "text"\nrole = "{_INPUT}"\n{_MANUAL}'
        f'inline_contents = "#!/bin/sh\\necho {_INPUT}"\nenv_vars = {{ MSG = "{_INPUT}" }}\n'
    ),
    "runbooks/book.toml": (
        'name = "book"\n[[input]]\nname = "word"\n[[steps]]\nname = "say"\ntype = "action"\n'
        f'command = "echo {{{{ .runbook_inputs.word }}}} {_INPUT}"\n'
    ),
}  # fmt: skip

NESTED: Any = json.loads("[" * 90 + "]" * 90)
INPUTS = {
    "a quote": "it's",
    "quotes and words": '"a b" \'c',
    "a backslash": "\\",
    "nothing": "",
    "a template": "{{ .nuon.inputs.inputs.msg }}",
    "half a template": "{{",
    "an option": "--yes -rf /",
    "lines": "a\nb\r\n$(id) `id` ;&|",
    "more than a variable holds": "x" * 40_000,
    "all that fits": "y" * 65_536,
    "marks": "\x01\x1b[2J\u202e\ufffe",
    "deep": "[" * 3000,
    "a placeholder's end": "))((exclave",
}
"""Values that a tenant can store in an input."""
OUTPUTS = {
    "a quote": "it's",
    "a number": 10**400,
    "nothing": None,
    "a table": {"a": {"b": "it's"}},
    "a deep list": NESTED,
    "a lot": "z" * 900_000,
    "a template": "{{ template `x` }}",
}
"""Values that a module can have as an output."""
RESULTS: dict[str, dict[str, Any]] = {
    "outputs that are a text": {"outputs": "x", "serial": 1},
    "outputs that are a list": {"outputs": [["a"]], "serial": 1},
    "a serial that is a text": {"digest": "sha256:" + "a" * 64, "serial": "many", "noop": False},
    "a serial without end": {"digest": "sha256:" + "a" * 64, "serial": 10**30},
    "secrets that are a list": {"secrets": ["a"]},
    "a secret that is a text": {"secrets": {"a": "b"}},
    "a secret without end": {"secrets": {"a": {"exists": "x", "length": -1}}},
    "steps that are a text": {"steps": "x", "status": {"deep": NESTED}},
    "everything": {"outputs": None, "serial": None, "secrets": None, "noop": "x", "digest": 5},
}
"""What a hostile runner can hand in for a job, whatever its kind."""


_DIGEST = "sha256:" + "a" * 64
BAD_BUILDS: dict[str, dict[str, Any]] = {
    "a digest that is none": {"digest": ["sha256:"], "size": 1},
    "a size that is a text": {"digest": _DIGEST, "size": "large"},
    "a size without end": {"digest": _DIGEST, "size": 10**30},
    "a commit that is a table": {"digest": _DIGEST, "size": 1, "commit": {"a": 1}},
}
"""What a hostile build runner can hand in."""


def write_hostile_app(folder: Path) -> Path:
    """Write the app."""
    starter = write_app(folder, "hostile")
    for file in sorted(starter.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    for name, text in FILES.items():
        file = starter / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return starter
