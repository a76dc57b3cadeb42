"""Rollouts: when objects are ready, why they are not, and waiting for them without polling."""
