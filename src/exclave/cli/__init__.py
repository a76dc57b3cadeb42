"""The command line: one module per noun, and what they share."""
