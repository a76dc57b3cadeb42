"""Copies what the containers of Jobs have printed into the log of the execution."""

from collections.abc import Sequence
from typing import Final

from exclave.base.errors import Problem
from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.runner.kube.api.client import LogSelection
from exclave.runner.kube.api.discovery import Resource
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.changes.ownership import read_annotation
from exclave.runner.kube.manifests.context import ManifestContext
from exclave.wire.kubernetes import COPY_LOG
from exclave.wire.logs import Stream

_POD: Final = Resource("", "v1", "Pod", "pods", namespaced=True)
_MOST_PODS: Final = 10
_MOST_LINES: Final = 10_000
_MOST_BYTES: Final = 1 << 20
"""Of one container; what is beyond it stays in the cluster."""


async def copy_job_logs(job: ManifestContext, objects: Sequence[WantedObject]) -> None:
    """Write the logs of the Jobs that ask for it; a log that cannot be read is a warning."""
    for wanted in objects:
        is_job = (wanted.id.group, wanted.id.kind) == ("batch", "Job")
        if is_job and read_annotation(wanted.value, COPY_LOG) == "true":
            try:
                await _copy(job, wanted.id)
            except Problem as problem:
                text = f"warning: the log of {wanted.id.address} cannot be read: {problem.message}"
                job.context.log.system(text)


async def _copy(job: ManifestContext, about: ObjectId) -> None:
    selection = Selection(about.namespace, labels=f"batch.kubernetes.io/job-name={about.name}")
    pods = (await job.client.list_objects(_POD, selection)).items
    for pod in pods[:_MOST_PODS]:
        name = text_or_empty(object_or_empty(pod.get("metadata")).get("name"))
        for container in _list_started(pod):
            wanted = LogSelection(container, tail_lines=_MOST_LINES, limit_bytes=_MOST_BYTES)
            text = await job.client.read_log(about.namespace, name, wanted)
            job.context.log.system(f"▸ log of {name}, container {container}")
            job.context.log.write(Stream.STDOUT, text.encode())
            job.context.log.end_streams()


def _list_started(pod: JsonObject) -> list[str]:
    """Return the containers of a pod that have printed anything."""
    statuses = list_or_empty(object_or_empty(pod.get("status")).get("containerStatuses"))
    return [
        text_or_empty(object_or_empty(status).get("name"))
        for status in statuses
        if "waiting" not in object_or_empty(object_or_empty(status).get("state"))
    ]
