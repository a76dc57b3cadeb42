"""The runner: polls for jobs, verifies and runs them, and reports the results."""
