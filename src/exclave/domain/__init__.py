"""Nouns, states and decisions: frozen values and pure functions, no clock, no I/O."""
