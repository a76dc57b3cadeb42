"""What is stored about an install: state versions, parts, overrides, schedules."""
