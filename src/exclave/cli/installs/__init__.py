"""`exclave installs`: `installs` holds the group and its basic verbs, other modules add theirs."""
