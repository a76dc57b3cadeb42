"""The Runner API: what runners call, on a port of its own, with credentials of their own."""

from exclave.api.runner.app import build_runner_app as build_runner_app
