"""Jobs on clusters: what belongs together is checked when a specification is made."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from exclave.wire.images import ImageSpec
from exclave.wire.kubernetes import HelmSpec, ManifestSpec
from exclave.wire.specs import JobSpec, SecretsSpec

SPEC: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)
ARTIFACT = {"repository": "acme/api", "digest": f"sha256:{'a' * 64}"}
PLAN = {"execution_id": f"exe_{'0' * 26}", "digest": f"sha256:{'b' * 64}"}
CLUSTER = {"type": "kubeconfig"}
MANIFEST = {
    "kind": "manifest",
    "operation": "plan",
    "workspace": "component:web",
    "cluster": CLUSTER,
    "namespace": "app",
    "manifest": "kind: ConfigMap",
}
HELM = {
    "kind": "helm",
    "operation": "plan",
    "workspace": "component:api",
    "cluster": CLUSTER,
    "namespace": "app",
    "artifact": ARTIFACT,
    "release": "api",
}
IMAGE = {
    "kind": "image",
    "artifact": ARTIFACT,
    "target": {"type": "stack", "folder": "web"},
    "tag": "x1",
}


@pytest.mark.parametrize(
    ("document", "type_"), [(MANIFEST, ManifestSpec), (HELM, HelmSpec), (IMAGE, ImageSpec)]
)
def test_a_specification_is_read_by_its_kind_and_survives_the_wire(
    document: dict[str, Any], type_: type
) -> None:
    spec = SPEC.validate_python(document)

    assert isinstance(spec, type_)
    assert SPEC.validate_json(SPEC.dump_json(spec)) == spec


@pytest.mark.parametrize(
    "wrong",
    [
        {**HELM, "operation": "apply"},
        {**HELM, "plan": PLAN},
        {**HELM, "operation": "apply", "plan": PLAN, "rollback_to": PLAN},
        {**HELM, "operation": "apply", "plan": PLAN, "scan": True},
        {**HELM, "destroy": True, "rollback_to": PLAN},
        {**HELM, "release": "r" * 54},
        {**HELM, "namespace": "Upper"},
        {**HELM, "workspace": "component:"},
        {**MANIFEST, "artifact": ARTIFACT},
        {**MANIFEST, "manifest": None},
        {**MANIFEST, "manifest": "x" * ((1 << 20) + 1)},
        {**MANIFEST, "cluster": {"type": "gke", "endpoint": "http://plain", "ca": ""}},
        {**IMAGE, "tag": "a/b"},
        {**IMAGE, "platforms": ["linux"]},
    ],
)
def test_what_does_not_belong_together_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SPEC.validate_python(wrong)


def test_secrets_go_into_a_cluster_that_is_named() -> None:
    target = {"secret": "db", "namespace": "app", "name": "db", "key": "password"}

    with pytest.raises(ValidationError, match="cluster"):
        SecretsSpec.model_validate({"secrets": [], "targets": [target]})

    spec = SecretsSpec.model_validate({"secrets": [], "targets": [target], "cluster": CLUSTER})
    assert SecretsSpec.model_validate(spec.model_dump(mode="json")) == spec


def test_runners_before_kubernetes_are_not_sent_fields_that_they_do_not_know() -> None:
    assert SecretsSpec(secrets=[]).model_dump(mode="json") == {
        "kind": "secrets",
        "secrets": [],
        "timeout_s": 300.0,
    }
