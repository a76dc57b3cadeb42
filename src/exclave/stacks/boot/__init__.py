"""The boot script of the runner's machine, put together for each cloud."""
