"""The executors: one per kind of job."""
