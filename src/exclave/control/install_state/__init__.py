"""Stored data of an install: state versions, parts, overrides, schedules."""
