"""The command line: one module or folder per noun, and what they share."""
