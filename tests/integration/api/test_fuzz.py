"""Requests made up from both OpenAPI documents: no bug answers, and every answer is documented."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
import schemathesis
import zstandard
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.python.asgi import ASGIClient
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from exclave.api.control import build_control_app
from exclave.api.openapi import render_control, render_runner
from exclave.api.runner import build_runner_app
from exclave.control.attest.base import AnyEvidence, Attestors, Claim, EvidenceRefused
from exclave.domain.install_identities import Proof
from exclave.domain.stacks import Cloud
from exclave.domain.timings import Timings
from tests.integration.api import cases_apps
from tests.integration.api.cases import make_execution, make_flow
from tests.integration.api.kit import make_site, open_deps

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance,
    response_headers_conformance, response_schema_conformance, unsupported_method,
    allow_header_conformance,
]  # fmt: skip
URL = "http://exclave.test"
FEW = settings(
    max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@dataclass(frozen=True)
class Target:
    """A control plane to be fuzzed, and ids of things that exist in it."""

    clients: dict[str, ASGIClient]
    ids: dict[str, str]


@schemathesis.serializer("application/zstd")
def compress(_: object, value: object) -> bytes:
    """Send what was made up as a real frame, as anything else is refused at the door."""
    return zstandard.compress(value if isinstance(value, bytes) else str(value).encode() + b"\n")


@schemathesis.serializer("application/x-tar")
def send_bytes(_: object, value: object) -> bytes:
    """Send what was made up as it is: no archive, mostly."""
    return value if isinstance(value, bytes) else str(value).encode()


Case = schemathesis.Case[Any]
control = schemathesis.openapi.from_dict(render_control())
runner = schemathesis.openapi.from_dict(render_runner())


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    """PostgreSQL, as it is the stricter of the two about what it stores."""
    clouds = (Cloud.AWS, Cloud.AZURE, Cloud.GCP)
    attestors = Attestors({cloud: RefusingAttestor() for cloud in clouds})
    with open_deps("postgres", Timings(poll_hold_s=0.05)) as deps:
        yield asyncio.run(_prepare(replace(deps, attestors=attestors)))


class RefusingAttestor:
    """Finds no evidence good, as that of a fuzzer never is."""

    async def verify(self, claim: Claim, evidence: AnyEvidence) -> Proof:
        raise EvidenceRefused("token", "made by a fuzzer")


async def _prepare(deps: Any) -> Target:
    site = await make_site(deps)
    flow = await make_flow(site)
    running = await make_execution(site)
    synced = await cases_apps.on_app("{app} {config}")(site)
    app, config = synced.path.split()
    clients = {
        "control": ASGIClient(cast("Any", build_control_app(deps)), URL),
        "runner": ASGIClient(cast("Any", build_runner_app(deps)), URL),
    }
    clients["control"].headers["Authorization"] = f"Bearer {site.admin.token}"
    clients["runner"].headers["Authorization"] = f"Bearer {running.enrolled.token}"
    return Target(
        clients=clients,
        ids={
            "app": app,
            "config": config,
            "install": site.queue,
            "runner": site.enrolled.id,
            "workflow": flow.id,
            "step": "gate",
            "lane": "sandbox",
            "job": running.job,
            "execution": running.execution,
            "queue_id": site.queue,
            "runner_id": site.enrolled.id,
            "workflow_id": flow.id,
        },
    )


@control.parametrize()
@FEW
def test_the_control_api_answers_anything_as_documented(case: Case, target: Target) -> None:
    _try(case, target, "control")


@runner.parametrize()
@FEW
def test_the_runner_api_answers_anything_as_documented(case: Case, target: Target) -> None:
    _try(case, target, "runner")


def _try(case: Case, target: Target, api: str) -> None:
    """Send the case as it is, and again about things that exist."""
    client = target.clients[api]
    case.call_and_validate(URL, client, checks=CHECKS)
    if _name_real_things(case, target.ids):
        case.call_and_validate(URL, client, checks=CHECKS)


def _name_real_things(case: Case, ids: dict[str, str]) -> bool:
    if case.operation.path.endswith("/stream"):
        return False  # it would not end before its workflow does
    changed = False
    for part in (case.path_parameters, case.query, case.body):
        if isinstance(part, dict):
            for name in ids.keys() & part.keys():
                part[name] = ids[name]
                changed = True
    return changed
