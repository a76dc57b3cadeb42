"""Releases of charts: values, rendering, frozen charts, records, plan, apply, teardown."""
