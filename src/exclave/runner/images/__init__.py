"""Container images: names, the graph of an image, copies between registries, pinned references."""
