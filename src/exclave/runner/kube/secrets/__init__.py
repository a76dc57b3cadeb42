"""Secrets of the customer as Kubernetes Secrets."""
