"""The Kubernetes API as the runner uses it: YAML, objects, discovery, requests and watches."""
