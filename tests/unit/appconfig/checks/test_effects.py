"""Every key of components in clusters and of images has an effect, or a warning that it has none.

A key counts as used if a module outside of the model reads an attribute of that name: whether what
it does with it is right is the matter of that module's tests.
"""

import ast
import functools
import typing
from pathlib import Path

import pytest

import exclave
from exclave.appconfig.checks.inert_keys import INERT
from exclave.appconfig.model.fields import Table
from exclave.appconfig.model.kinds.container_image import AwsEcr, AzureAcr, ContainerImage, GcpGar
from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.model.kinds.kubernetes_contexts import KubernetesContext
from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest, Kustomize
from exclave.appconfig.model.kinds.other_components import DockerBuild, Job

TABLES = (
    HelmChart, KubernetesManifest, Kustomize, Job,
    ContainerImage, AwsEcr, GcpGar, AzureAcr, DockerBuild, KubernetesContext,
)  # fmt: skip
WITHOUT = {"var_name": "documented as kept without effect", "labels": "of people's own use"}
"""Keys of all components that are meant to do nothing."""


@functools.cache
def list_read_attributes() -> frozenset[str]:
    """Return the names of all attributes that code outside of the model reads."""
    root = Path(exclave.__file__).parent
    rooms = ("jobspec", "control/job_specs", "control/progress", "control/install_state",
             "control/installs", "control/builds", "appconfig/checks", "appconfig/graph.py")  # fmt: skip
    files = [
        file
        for room in rooms
        for file in ([root / room] if room.endswith(".py") else (root / room).rglob("*.py"))
        if file.name != "inert_keys.py"
    ]
    return frozenset(
        node.attr
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
    )


def list_keys(table: type[Table]) -> list[str]:
    """Return the keys of a table."""
    hints = typing.get_type_hints(table)
    return [name for name in hints if not name.isupper() and not name.startswith("_")]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_every_key_is_read_or_told_to_have_no_effect(table: type[Table]) -> None:
    unread = {key for key in list_keys(table) if key not in list_read_attributes()}

    assert unread - set(INERT.get(table, {})) - set(WITHOUT) == set()


def test_a_key_that_is_told_to_have_no_effect_exists() -> None:
    assert [
        (table.__name__, key)
        for table in INERT
        for key in INERT[table]
        if key not in list_keys(table)
    ] == []
