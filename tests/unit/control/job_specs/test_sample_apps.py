"""Components as people write them: every shape has a build and a job, except programs of Pulumi."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.container_image import ContainerImage
from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest
from exclave.appconfig.model.kinds.shared import Repos
from exclave.appconfig.model.sections import COMPONENT_TYPES as KNOWN_TYPES
from exclave.appconfig.read_app import read_app
from exclave.control.job_specs.component_types import (
    COMPONENT_TYPES,
    CopiedType,
    PlannedType,
    get_type,
)
from exclave.domain.intents import PlanPart, SyncPart
from exclave.domain.stacks import Cloud
from exclave.jobspec.builds import make_target
from exclave.jobspec.facts import ImageFacts
from exclave.wire.kubernetes import KubeconfigCluster
from tests.unit.appconfig.directories import APPS, WHOLE
from tests.unit.jobspec.jobspec_kit import ARTIFACT, SOURCES, plan_facts

SAMPLES = (*(APPS / name for name in WHOLE), *sorted((APPS / "habits").glob("*-*")))
PULUMI = "pulumi"


def render(text: str, where: str) -> str:
    """Return a text whose templates have all become the same word."""
    del where
    return re.sub(r"\{\{.*?\}\}", "1", text)


def list_components(folder: Path) -> list[Component]:
    values = [entry.value for entry in read_app(folder).app.entries]
    return [value for value in values if isinstance(value, Component)]


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda folder: folder.name)
def test_the_components_of_a_sample_app_can_be_built_and_deployed(folder: Path) -> None:
    components = [one for one in list_components(folder) if one.type != PULUMI]

    for component in components:
        part, type_ = f"component:{component.name}", get_type(component)
        if isinstance(component, Repos | ContainerImage) and type_.artifact:
            target = make_target(component, SOURCES, part=part, type_=type_.artifact)
            assert target is not None or isinstance(component, KubernetesManifest), part
        facts = replace(plan_facts(), render=render, cluster=KubeconfigCluster())
        match type_:
            case PlannedType():
                job = type_.make_plan(component, facts, PlanPart(part))
            case CopiedType():
                image = ImageFacts(ARTIFACT, render, "ins_1", Cloud.LOCAL, {}, "")
                job = type_.make_sync(component, image, SyncPart(part, destroy=False))
            case _:
                pytest.fail(f"{part} has a type that is neither planned nor copied")
        assert job.model_dump()["kind"] == type_.kind


def test_only_pulumi_is_not_deployed_and_says_why() -> None:
    assert KNOWN_TYPES.keys() - COMPONENT_TYPES.keys() == {PULUMI}
    assert KNOWN_TYPES[PULUMI].UNSUPPORTED


def test_the_samples_have_every_type() -> None:
    found = {one.type for folder in SAMPLES for one in list_components(folder)}

    assert found == KNOWN_TYPES.keys()
