"""Stacks: the files that a customer runs so that a runner starts in their account."""
