"""`exclave apps`: `local` has the verbs for app directories, `server` those for the server."""
