"""From what a step is meant to do to the job that does it, made when the step begins."""
