"""A large app, for the bench: 60 components, 40 actions, about 200 files."""

import shutil
from pathlib import Path

from tests.unit.appconfig.directories import BASE, REPO

VALUES = "\n".join(f"key_{number}: value {number}" for number in range(60))


def write_large_app(folder: Path, *, components: int = 60, actions: int = 40) -> Path:
    """Write the app into a new folder."""
    shutil.copytree(BASE, folder)
    (folder / "components" / "values").mkdir()
    (folder / "actions" / "scripts").mkdir()
    for number in range(components - 2):
        _write_component(folder / "components", number)
    for number in range(actions):
        _write_action(folder / "actions", number, number % (components - 2))
    return folder


def _write_component(folder: Path, number: int) -> None:
    needs = f'["c{number - 1}"]' if number % 3 else "[]"
    above = f"c{number - number % 3}" if number % 3 else "database"
    (folder / f"c{number}.toml").write_text(
        f'name = "c{number}"\ntype = "helm_chart"\nchart_name = "acme-c{number}"\n'
        f"dependencies = {needs}\n{REPO}\n"
        '[values]\ndomain = "{{ .nuon.inputs.inputs.domain }}"\nid = "{{ .nuon.install.id }}"\n'
        f'[[values_file]]\ncontents = "./values/c{number}.yaml"\n'
    )
    (folder / "values" / f"c{number}.yaml").write_text(
        f"{VALUES}\nhost: {{{{ .nuon.components.{above}.outputs.host }}}}\n"
        '{{ if eq .nuon.inputs.inputs.domain "example.com" }}public: true{{ end }}\n'
    )


def _write_action(folder: Path, number: int, component: int) -> None:
    (folder / f"a{number}.toml").write_text(
        f'name = "a{number}"\ntimeout = "5m"\n'
        f'[[triggers]]\ntype = "post-deploy-component"\ncomponent_name = "c{component}"\n'
        f'[[steps]]\nname = "run"\ninline_contents = "./scripts/a{number}.sh"\n'
        f'[steps.env_vars]\nHOST = "{{{{ .nuon.components.c{component}.outputs.host }}}}"\n'
    )
    (folder / "scripts" / f"a{number}.sh").write_text("#!/bin/sh\n" + 'echo "$HOST"\n' * 50)
