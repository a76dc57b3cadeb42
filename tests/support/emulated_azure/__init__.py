"""An Azure on this machine for tests: templates evaluated, and the services that a runner asks."""
