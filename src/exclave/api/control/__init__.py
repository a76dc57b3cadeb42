"""The Control API: routes for people, the CLI and other clients."""

from exclave.api.control.app import build_control_app as build_control_app
