"""Versions of the Stacks of clouds: what they are made from, and when a new one is needed."""
