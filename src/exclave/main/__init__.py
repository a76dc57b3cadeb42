"""Composition roots: settings, the server, the runner, the development set-up, the command."""
