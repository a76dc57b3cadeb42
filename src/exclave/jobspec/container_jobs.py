"""The jobs of components of type `job`: a container that runs once, as a manifest of one Job."""

import json
from collections.abc import Mapping

from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest
from exclave.appconfig.model.kinds.other_components import Job
from exclave.base.digests import digest_json
from exclave.base.json_values import Json, JsonObject
from exclave.domain.intents import ApplyPart, PlanPart, ScanPart
from exclave.domain.lanes import slug
from exclave.jobspec.cluster_parts import fill_apply, fill_plan, is_rendered
from exclave.jobspec.facts import ApplyFacts, PlanFacts
from exclave.jobspec.texts import render_map
from exclave.wire.kubernetes import COPY_LOG, ManifestSpec

_PLACEHOLDER = "((exclave:"
_MOST_NAME = 52
"""So that the name with its digest is a label, which Kubernetes puts on the pods of a Job."""
_DIGITS = 10


def make_container_job_plan(
    definition: Job, facts: PlanFacts, intent: PlanPart | ScanPart
) -> ManifestSpec:
    """Return the job that plans the run of a container, its removal, or looks for drift."""
    fields = fill_plan(_write_as_manifest(definition), facts, intent)
    if not is_rendered(facts, intent):
        return ManifestSpec(**fields)
    objects = make_job_objects(definition, facts, intent.part, timeout_s=fields["timeout_s"])
    text = "\n---\n".join(json.dumps(value, sort_keys=True) for value in objects)
    return ManifestSpec(**fields, manifest=text)


def make_container_job_apply(definition: Job, facts: ApplyFacts, intent: ApplyPart) -> ManifestSpec:
    """Return the job that runs a container as it was approved."""
    return ManifestSpec(**fill_apply(_write_as_manifest(definition), facts, intent))


def make_job_objects(
    definition: Job, facts: PlanFacts, part: str, *, timeout_s: float
) -> list[JsonObject]:
    """Return a Job whose name follows from what it runs, and the Secret that it reads.

    The same content has the same name: it is there already and does not run again. A Job has no
    time to live: it would run again after it was removed.
    """
    env = render_map(facts.render, definition.env_vars, f"{part}: env_vars")
    image = facts.render(definition.image_url, f"{part}: image_url")
    tag = facts.render(definition.tag, f"{part}: tag")
    hidden = {name: text for name, text in env.items() if _PLACEHOLDER in text}
    container: dict[str, Json] = {
        "name": "job",
        "image": f"{image}:{tag}",
        "command": _render_all(facts, definition.cmd, f"{part}: cmd"),
        "args": _render_all(facts, definition.args, f"{part}: args"),
    }
    content = {"container": container, "env": env, "timeout_s": timeout_s}
    digits = digest_json(content).partition(":")[2][:_DIGITS]
    name = f"{slug(definition.name).replace('_', '-')[:_MOST_NAME].strip('-')}-{digits}"
    container["env"] = [_write_variable(key, text, name, hidden) for key, text in env.items()]
    job = _write_job(name, container, int(timeout_s))
    return [_write_secret(name, hidden), job] if hidden else [job]


def _write_as_manifest(definition: Job) -> KubernetesManifest:
    """Return the component as one of the type whose jobs deploy it; its text is made later."""
    return KubernetesManifest(
        type=KubernetesManifest.TYPE,
        name=definition.name,
        namespace=definition.namespace,
        deploy_timeout=definition.deploy_timeout,
    )


def _write_job(name: str, container: JsonObject, seconds: int) -> JsonObject:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": {COPY_LOG: "true"}},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": seconds,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def _write_secret(name: str, values: Mapping[str, str]) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": dict(values),
    }


def _write_variable(key: str, text: str, secret: str, hidden: Mapping[str, str]) -> JsonObject:
    if key not in hidden:
        return {"name": key, "value": text}
    return {"name": key, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def _render_all(facts: PlanFacts, texts: tuple[str, ...], where: str) -> list[str]:
    return [facts.render(text, f"{where}[{at}]") for at, text in enumerate(texts)]
