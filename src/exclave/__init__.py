"""Exclave: deliver and operate software inside your customers' own cloud accounts."""

__version__ = "0.1.0"
