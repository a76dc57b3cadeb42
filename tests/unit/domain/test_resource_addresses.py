"""Addresses of objects are kept as they are; everything else is read as Terraform's."""

import pytest

from exclave.domain.resource_addresses import is_object_address, read_resource_address


@pytest.mark.parametrize(
    "address",
    [
        "apps/Deployment/shop/web",
        "ConfigMap/shop/web.conf",
        "ConfigMap/shop/texts",
        "Namespace/shop",
        "v1/Secret/shop/db_1",
        "rbac.authorization.k8s.io/ClusterRole/system:***",
        "rbac.authorization.k8s.io/ClusterRole/system:web",
        "ConfigMap/shop/***",
        'aws_s3_bucket.b["x"]',
        "",
    ],
)
def test_an_address_of_either_kind_stays_as_it_is(address: str) -> None:
    assert read_resource_address(address) == address


@pytest.mark.parametrize(
    "text",
    [
        "configmap/shop/web",
        "ConfigMap/shop/a/b/c",
        "ConfigMap/shop/a b",
        "ConfigMap/shop/\x1b[2J",
        "apps/deployment/shop/web",
        "apps/Deployment/shop/",
        "a/B/c/d/e",
        "apps/Deployment/shop/w eb",
        "/Pod/x",
    ],
)
def test_a_text_that_is_no_address_says_so(text: str) -> None:
    assert not is_object_address(text)
    assert read_resource_address(text).startswith("(unreadable address ")
