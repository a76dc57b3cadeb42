"""`exclave workflows`: `workflows` holds the group, `steps` and `plans` add their verbs."""
