"""Checks that look at more than one key: one module per noun, all findings at once."""
