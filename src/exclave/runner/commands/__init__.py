"""Command lines as data: what is run is decided here, tested as text."""
