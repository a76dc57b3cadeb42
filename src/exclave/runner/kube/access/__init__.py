"""Access to clusters: where credentials come from, and how commands get access without them."""
