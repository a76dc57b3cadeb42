"""Work on Kubernetes clusters: the API client, access to clusters, changes and rollouts."""
