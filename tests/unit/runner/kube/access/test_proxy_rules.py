import pytest

from exclave.runner.kube.access.proxy_rules import Mode, clean_request, decide

POD = "/api/v1/namespaces/n/pods/p"


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", POD),
        ("GET", f"{POD}/log?follow=true"),
        ("GET", "/version"),
        ("GET", "/apis"),
        ("PATCH", f"{POD}?dryRun=All&fieldManager=x"),
        ("PUT", f"{POD}/status?dryRun=All"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ],
)
def test_a_plan_reads_and_asks(method: str, target: str) -> None:
    assert decide(Mode.READ, method, target).passes


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("POST", "/api/v1/namespaces"),
        ("PATCH", f"{POD}?fieldManager=dryRun%3DAll"),
        ("PATCH", f"{POD}?dryRun="),
        ("PATCH", f"{POD}?dryRun=All&dryRun=None"),
        ("DELETE", f"{POD}?dryRun=All"),
        ("GET", f"{POD}/exec?command=rm"),
        ("GET", f"{POD}/%65xec?command=rm"),
        ("GET", f"{POD}/proxy/shutdown"),
        ("POST", f"{POD}/portforward?dryRun=All"),
        ("POST", "/api/v1/namespaces/n/serviceaccounts/default/token?dryRun=All"),
        ("POST", f"{POD}/eviction?dryRun=All"),
        ("PUT", "/api/v1/namespaces/n/finalize?dryRun=All"),
        ("MOVE", POD),
    ],
)
def test_a_plan_changes_nothing(method: str, target: str) -> None:
    verdict = decide(Mode.READ, method, target)

    assert verdict.status == 403
    assert decide(Mode.WRITE, method, target).passes
    assert decide(Mode.WRITE, method, target).changes


@pytest.mark.parametrize(
    "target", ["/api/v1//namespaces/n", "/api/v1/x/../namespaces/n", "/api/v1/pods/%2565xec/x"]
)
def test_a_path_that_can_be_read_in_two_ways_is_refused(target: str) -> None:
    assert decide(Mode.WRITE, "GET", target).status == 400


def test_nothing_passes_after_the_end() -> None:
    assert decide(Mode.CLOSED, "GET", "/version").status == 401


def test_headers_that_name_somebody_are_dropped() -> None:
    headers = [
        (b"authorization", b"x"),
        (b"impersonate-user", b"x"),
        (b"impersonate-extra-scopes", b"x"),
        (b"x-remote-user", b"x"),
        (b"host", b"x"),
        (b"accept", b"application/json"),
        (b"connection", b"upgrade"),
        (b"upgrade", b"websocket"),
        (b"sec-websocket-key", b"k"),
    ]

    assert clean_request(headers, upgrade=False) == [
        (b"accept", b"application/json"),
        (b"sec-websocket-key", b"k"),
    ]
    assert clean_request(headers, upgrade=True)[-2:] == [
        (b"connection", b"Upgrade"),
        (b"upgrade", b"websocket"),
    ]
