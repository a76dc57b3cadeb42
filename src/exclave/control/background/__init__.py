"""Tasks that a server runs beside answering requests."""
