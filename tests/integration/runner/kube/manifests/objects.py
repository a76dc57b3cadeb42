"""Texts of objects that these tests deploy."""

import json

from exclave.base.json_values import Json, JsonObject


def config_map(name: str, **data: str) -> JsonObject:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(
    name: str, replicas: int = 1, image: str = "shop/web:1", **annotations: str
) -> JsonObject:
    """Return a Deployment; annotations of its pods choose what the kubelet reports."""
    labels = {"app": name}
    own = {key.replace("_", "/"): value for key, value in annotations.items()}
    pod: Json = {
        "metadata": {"labels": labels, "annotations": own},
        "spec": {"containers": [{"name": "app", "image": image}]},
    }
    spec: JsonObject = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": pod,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def write(*objects: JsonObject) -> str:
    """Return objects as a text of several documents."""
    return "\n---\n".join(json.dumps(value) for value in objects)
