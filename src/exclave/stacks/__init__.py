"""Stacks: what a customer runs so that a runner starts in their account; pure text."""
