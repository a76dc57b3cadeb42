"""A scan reports what differs, field by field, and the same again if nothing has changed."""

from typing import Any

from tests.integration.runner.kube.manifests.objects import config_map, write
from tests.support.manifests import ManifestHarness


async def scan(bench: ManifestHarness) -> Any:
    return (await bench.plan(scan=True)).outputs["drift"]


async def test_a_hand_edit_is_one_finding_until_it_is_edited_again(
    bench: ManifestHarness,
) -> None:
    await bench.deploy(write(config_map("a", size="1"), config_map("b", size="1")))
    path = f"/api/v1/namespaces/{bench.namespace}/configmaps"
    nothing = await scan(bench)
    edit(bench, f"{path}/a", "2")
    bench.cluster.request("DELETE", f"{path}/b")

    first, again = await scan(bench), await scan(bench)
    edit(bench, f"{path}/a", "3")
    other = await scan(bench)

    assert nothing == {"findings": [], "more": 0}
    edited, removed = sorted(first["findings"], key=lambda entry: str(entry["address"]))
    assert (edited["address"], edited["path"]) == (f"ConfigMap/{bench.namespace}/a", "data.size")
    assert (edited["change"], edited["detail"]) == ("update", '"2" → "1"')
    assert (removed["change"], removed["path"]) == ("create", "")
    assert again == first
    contents = {entry["path"]: entry["content"] for entry in other["findings"]}
    assert contents["data.size"] != edited["content"]
    assert contents[""] == removed["content"]


def edit(bench: ManifestHarness, path: str, size: str) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    changed = bench.cluster.api.patch(path, json={"data": {"size": size}}, headers=headers)
    assert changed.is_success
