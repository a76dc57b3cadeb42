"""The lifecycle of an execution on the runner: accept, run, stop, deliver, recover."""
