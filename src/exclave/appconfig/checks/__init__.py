"""Checks that involve more than one key: one module per noun. All findings are reported."""
