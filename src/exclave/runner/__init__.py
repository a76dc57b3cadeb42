"""The runner: asks for work, proves it may do it, does it, hands in the result."""
