"""Changes of objects: compared with the cluster, ordered, planned, applied, pruned, removed."""
