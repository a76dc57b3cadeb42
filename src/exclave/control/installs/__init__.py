"""Installs: create, configure, upgrade, and start their workflows."""
