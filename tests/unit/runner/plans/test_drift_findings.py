"""A scan reports each field that differs, with both values, and no sensitive one."""

from typing import Any

from exclave.runner.plans.drift_findings import list_findings
from exclave.wire.plans import PlanAttribute, PlanDocument, PlannedOutput, PlannedResource

WEB = "apps/Deployment/ns/web"


def make(action: Any, *attributes: PlanAttribute, address: str = WEB) -> PlannedResource:
    return PlannedResource(
        address=address, type="a", name="b", action=action, attributes=list(attributes)
    )


def find(*resources: PlannedResource, outputs: list[PlannedOutput] | None = None) -> Any:
    return list_findings(PlanDocument(resources=list(resources), outputs=outputs or []))


def test_each_field_of_an_update_is_a_finding_with_the_live_and_the_deployed_value() -> None:
    replicas = PlanAttribute(path="spec.replicas", before=5, after=2)
    ignored = PlanAttribute(path="spec.paused", before=True, ignored=True)

    report = find(make("update", replicas, ignored), make("no-op", address="Secret/ns/a"))

    (finding,) = report["findings"]
    assert (finding["address"], finding["path"], finding["change"]) == (
        WEB,
        "spec.replicas",
        "update",
    )
    assert (finding["detail"], report["more"]) == ("5 → 2", 0)


def test_a_resource_that_is_missing_is_one_finding() -> None:
    report = find(make("create", PlanAttribute(path="data.a", after="b")))

    assert [(entry["path"], entry["change"]) for entry in report["findings"]] == [("", "create")]


def test_another_value_is_another_content_and_a_sensitive_one_never_leaves() -> None:
    first, second, secret = (
        find(make("update", entry))["findings"][0]
        for entry in (
            PlanAttribute(path="a", before=1, after=2),
            PlanAttribute(path="a", before=3, after=2),
            PlanAttribute(path="a", before="canary", after="b", sensitive=True),
        )
    )

    assert first["content"] != second["content"]
    assert secret["detail"] == "(sensitive)"
    assert "canary" not in str(secret)


def test_an_output_of_terraform_that_would_change_is_a_finding() -> None:
    output = PlannedOutput(name="url", action="update", before="a", after="b")

    assert find(outputs=[output])["findings"][0]["address"] == "output.url"


def test_what_is_too_much_is_counted() -> None:
    report = find(*(make("create", address=f"ConfigMap/ns/c{number}") for number in range(250)))

    assert (len(report["findings"]), report["more"]) == (200, 50)
