"""Typed HTTP clients of both APIs, with the retry policy in one place."""
