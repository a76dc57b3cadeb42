"""Jobs of components that are Kubernetes objects: planned, applied, scanned, torn down."""
