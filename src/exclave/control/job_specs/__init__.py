"""Build the job of a step when the step starts."""
